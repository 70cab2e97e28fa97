package machine

import (
	"testing"
	"testing/synctest"
)

// Many callers treat 0 as an unset time.
func TestMonotonicClockIsAboveZeroInBubble(t *testing.T) {
	outside := Now().Mono
	if outside <= 0 {
		t.Errorf("outside %v", outside)
	}
	synctest.Test(t, func(t *testing.T) {
		if inside := Now().Mono; inside <= 0 {
			t.Errorf("in a bubble %v", inside)
		}
	})
}
