package hold_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestGroupTrustEndsBeforeReleaseIsSent(t *testing.T) {
	lab.Each(t, map[string]func(context.Context, held) error{
		"Release":          func(ctx context.Context, h held) error { return h.Release(ctx) },
		"CommitAndRelease": func(ctx context.Context, h held) error { return h.CommitAndRelease(ctx, noted("1")) },
	}, func(t *testing.T, w *lab.World, release func(context.Context, held) error) {
		c, wire := w.Work().Client(lab.Config())
		g := w.AcquireAll(c, leasehold.Keys("a", "b"))
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			for _, l := range g.Locks() {
				if r.Releases() && l.Err() == nil {
					t.Errorf("%v is trusted while it is released", l.Key())
				}
			}
			return r.Send()
		})
		lab.WantErr(t, "release", release(t.Context(), g), nil)
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
		lab.Want(t, "held", w.HeldAmong(leasehold.Keys("a", "c")), nil)
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
		lab.WantErr(t, "release", g.Release(t.Context()), nil)
		lab.WantErr(t, "release", others.Release(t.Context()), nil)
	})
}

func TestGroupReleaseHandsOverKeysToWaiters(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		g := w.AcquireAll(c, leasehold.Keys("a", "b"))
		next := w.Queue(c, "a")
		wire.Sent()
		lab.WantErr(t, "release", g.Release(t.Context()), nil)
		heir := <-next
		if sent := wire.Sent(); len(sent) != 2 || !slices.ContainsFunc(sent, lab.Call.HandsOver) {
			t.Errorf("sent %v", lab.Ops(sent))
		}
		w.Release(heir)
	})
}
