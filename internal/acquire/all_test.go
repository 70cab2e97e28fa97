package acquire_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold/internal/acquire"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// owners returns the holder of each key.
func (w *world) owners(keys ...string) []string {
	w.Helper()
	var owners []string
	for _, key := range keys {
		owners = append(owners, w.owner(key))
	}
	return owners
}

func TestAcquireAllWritesOncePerKeyInOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.client("me")
		found, err := c.All(t.Context(), c.wants("a", "b", "c"))
		if got := keysOf(found); err != nil || got != "a b c" {
			t.Fatalf("granted %s: %v", got, err)
		}
		if sent := c.wire.requests(); !slices.Equal(sent, []string{"update", "update", "update"}) || len(c.given) > 0 {
			t.Errorf("sent %v, gave back %v", sent, c.given)
		}
	})
}

func TestAcquireAllHoldsLowerKeysWhileItWaits(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		other := w.client("other").one("b")
		c := w.client("me")
		time.AfterFunc(timing.Lease/4, func() {
			if got := w.owners("a", "b", "c"); !slices.Equal(got, []string{"me", "other", ""}) {
				t.Errorf("while it waits, held by %q", got)
			}
		})
		_, err := c.All(w.within(timing.Lease/2), c.wants("a", "b", "c"))
		if held := (*heldError)(nil); !errors.As(err, &held) || held.key.Partition != "b" {
			t.Errorf("%v", err)
		}
		c.left()
		if got := w.owners("a", "b", "c"); !slices.Equal(got, []string{"", "other", ""}) {
			t.Errorf("in the end, held by %q", got)
		}
		other.release()
		if found, err := c.All(t.Context(), c.wants("a", "b", "c")); err != nil || len(found.Held) != 3 {
			t.Errorf("%v", err)
		}
	})
}

func TestAcquireAllReadsRemainingKeysOnceBeforeItWaits(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		other := w.client("other")
		b, c2 := other.one("b"), other.one("c")
		c := w.client("me")
		time.AfterFunc(timing.Lease/4, b.release)
		time.AfterFunc(timing.Lease/2, c2.release)
		lab.OK(t, lab.ErrorOf(c.All(t.Context(), c.wants("a", "b", "c"))))
		if sent := c.wire.requests(); strings.Count(fmt.Sprint(sent), "batch") != 1 {
			t.Errorf("sent %v", sent)
		}
	})
}

func TestAcquireAllObservesAllDeadHoldersDuringOneLease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		dies := w.client("dies")
		dies.one("a")
		dies.one("b")
		dies.one("c")
		c := w.client("me")
		began := time.Now()
		lab.OK(t, lab.ErrorOf(c.All(t.Context(), c.wants("a", "b", "c"))))
		if took := time.Since(began); took > timing.Lease+time.Second {
			t.Errorf("took %v, a lease is %v", took, timing.Lease)
		}
	})
}

func TestAcquireAllWithNoWaitFailsAtFirstHeldKey(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.client("other").one("b")
		c := w.client("me")
		_, err := c.All(t.Context(), edited(c.wants("a", "b", "c"), noWait))
		if held := (*heldError)(nil); !errors.As(err, &held) || held.key.Partition != "b" {
			t.Errorf("%v", err)
		}
		c.left()
		if got := w.owners("a", "b", "c"); !slices.Equal(got, []string{"", "other", ""}) {
			t.Errorf("held by %q", got)
		}
	})
}

func TestAcquireAllWaitsForDeadHolderWhileHoldingOtherKeys(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.client("other").one("b")
		c := w.client("me")
		ctx := w.within(timing.Lease + time.Second) // long enough for the lease of b's dead holder to expire
		_, err := c.All(ctx, c.wants("a", "b"))
		// This test renews no grant. So the grant of a is lost while the call waits for b, and
		// the call must acquire a again.
		if err != nil || len(c.grants) < 2 || c.grants[1].Dead == nil {
			t.Errorf("%v: %+v", err, c.grants)
		}
	})
}

func TestAcquireAllAcquiresLostKeyAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.client("me")
		c.wire.fate = func(n int, _ string, deliver func()) error {
			deliver()
			if n == 2 { // the second request is the grant of b; after it is applied, the call loses the lock of a
				c.mu.Lock()
				defer c.mu.Unlock()
				c.leases["a"].End(errors.New("lost"))
			}
			return nil
		}
		for _, h := range lab.Must(c.All(t.Context(), c.wants("a", "b")))(t).Held {
			if cause := h.Lease().Ended(); cause != nil {
				t.Errorf("returned with a lost one: %v", cause)
			}
		}
	})
}

func TestAcquireAllReleasesAllKeysIfContextEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.client("me")
		ctx, leave := context.WithCancel(t.Context())
		wants := c.wants("a", "b")
		hold := wants[1].Hold
		wants[1].Hold = func(ctx context.Context, g acquire.Grant) acquire.Holding {
			leave()
			time.Sleep(time.Second) // the caller's context has ended, so the call of All gives up during this second
			return hold(ctx, g)
		}
		if _, err := c.All(ctx, wants); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		c.left()
		if got := w.owners("a", "b"); len(c.grants) != 2 || !slices.Equal(got, []string{"", ""}) {
			t.Errorf("of %d grants, held by %q", len(c.grants), got)
		}
	})
}

func TestAcquireAllQueuesLocallyOnlyForKeysItHasReached(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.client("me")
		other := w.client("other").one("a")
		granted := lab.Go(func() error { return lab.ErrorOf(c.All(t.Context(), c.wants("a", "b"))) })
		time.Sleep(timing.Lease / 4) // by this time the call waits for a and holds no key
		lab.Must(c.One(w.within(time.Second), c.want("b")))(t).Held[0].(*holding).release()
		other.release()
		lab.OK(t, <-granted)
	})
}

func TestAcquireAllLeavesLocalQueueOfUnreachedKeyUnchanged(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.client("me")
		w.client("other").one("a")
		var first, second func() bool
		// After one second the call still waits for a, and has not yet joined the local queue of
		// b.
		time.AfterFunc(time.Second, func() { first, second = c.join("b"), c.join("b") })
		if _, err := c.All(w.within(timing.Lease/2), c.wants("a", "b")); !errors.As(err, new(*heldError)) {
			t.Errorf("%v", err)
		}
		c.left()
		synctest.Wait() // orders the two joins before the checks below, for the race detector
		if !first() || second() {
			t.Error("not the first in its queue has the turn alone")
		}
	})
}

func TestAcquireAllRetriesDeniedRequestForKeyItHasReadBefore(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.heldForASecond("a")
		time.AfterFunc(5*time.Second, w.client("other").one("b").release)
		c, began := w.client("me"), time.Now()
		c.wire.fate = func(_ int, _ string, deliver func()) error {
			if after := time.Since(began); after > 2*time.Second && after < 4*time.Second { // at this time the call holds a and waits for b
				return errDenied
			}
			deliver()
			return nil
		}
		if _, err := c.All(t.Context(), c.wants("a", "b")); err != nil {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}
