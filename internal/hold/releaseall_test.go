package hold_test

import (
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestGroupTrustEndsBeforeReleaseIsSent(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		g := w.AcquireAll(c, leasehold.Keys("a", "b"))
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			for _, l := range g.Locks() {
				if r.Releases() && l.Err() == nil {
					t.Errorf("%v is trusted while it is released", l.Key())
				}
			}
			return r.Send()
		})
		if err := g.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestGroupReleaseJoinsErrorsOfLocks(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		g := w.AcquireAll(c, leasehold.Keys("a", "b", "c"))
		w.Delete("b")
		err := g.Release(t.Context())
		var lost *leasehold.LostError
		if !errors.As(err, &lost) || lost.Key.Partition != "b" {
			t.Errorf("error %v", err)
		}
		if held := w.HeldAmong(leasehold.Keys("a", "c")); len(held) > 0 {
			t.Errorf("left held: %v", held)
		}
	})
}

func TestGroupReleaseSucceedsIfKeysAreGrantedAfterLostReply(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, wire := w.Client(lab.Config())
		b, _ := w.Client(lab.Config())
		g := w.AcquireAll(a, leasehold.Keys("a", "b"))
		var others *leasehold.Group
		wire.SetFault(lab.Once(lab.Call.Releases, func(r *lab.Request) (*http.Response, error) {
			_, _ = r.Send()
			others = w.AcquireAll(b, leasehold.Keys("a", "b"))
			return nil, lab.ErrReset
		}))
		if err := g.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if err := others.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestGroupReleaseHandsOverKeysToWaiters(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		g := w.AcquireAll(c, leasehold.Keys("a", "b"))
		next := make(chan *leasehold.Lock, 1)
		go func() { next <- w.Acquire(c, "a") }()
		lab.Elapse(0)
		wire.Sent()
		if err := g.Release(t.Context()); err != nil {
			t.Error(err)
		}
		heir := <-next
		if sent := wire.Sent(); len(sent) != 2 || !slices.ContainsFunc(sent, lab.Call.HandsOver) {
			t.Errorf("sent %v", lab.Ops(sent))
		}
		w.Release(heir)
	})
}
