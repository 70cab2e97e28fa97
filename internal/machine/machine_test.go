package machine

import (
	"testing"
	"testing/synctest"
)

// Many callers of Now treat a reading of 0 as unset.
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
