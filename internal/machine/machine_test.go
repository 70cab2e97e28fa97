package machine

import (
	"testing"
	"testing/synctest"
)

// Many callers of Now use a monotonic time of zero to mark an unset time.
func TestMonotonicClockIsAboveZeroInSynctestBubble(t *testing.T) {
	outside := Now().Mono
	if outside <= 0 {
		t.Errorf("outside a bubble: %v", outside)
	}
	synctest.Test(t, func(t *testing.T) {
		if inside := Now().Mono; inside <= 0 {
			t.Errorf("in a bubble: %v", inside)
		}
	})
}
