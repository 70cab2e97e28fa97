package behaviour_test

import (
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestStatsShowLockCountAndShortestTrust(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		acquire := func(key string, lease time.Duration) *leasehold.Lock {
			return w.Acquire(c, key, leasehold.WithLease(lease), leasehold.WithoutRenewal())
		}
		locks := []*leasehold.Lock{acquire("a", 10*time.Minute), acquire("b", time.Minute), acquire("c", 5*time.Minute)}
		first := time.Until(locks[1].TrustedUntil())
		if s := c.Stats(); s.Held != 3 || s.MinRemaining != first {
			t.Errorf("held: %+v, want 3 and %v", s, first)
		}
		for _, lock := range locks {
			w.Release(lock)
		}
		if s := c.Stats(); s.Held != 0 || s.MinRemaining != 0 {
			t.Errorf("released: %+v", s)
		}
	})
}
