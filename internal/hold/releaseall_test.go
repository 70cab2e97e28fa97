package hold_test

import (
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestAReleaseThatIsRefusedTogetherIsDoneOneByOne(t *testing.T) {
	for name, fault := range map[string]lab.Fault{
		"not allowed": func(*lab.Request) (*http.Response, error) {
			return lab.Refusal(400, "AccessDeniedException"), nil
		},
		"in conflict": func(r *lab.Request) (*http.Response, error) {
			return lab.Conflict(r.Call), nil
		},
		"never answered": lab.Cut,
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.Config())
				g := w.AcquireAll(c, leasehold.Keys("a", "b", "c"))
				wire.Sent()
				wire.SetFault(lab.Once(lab.Call.Releases, fault))
				if err := g.Release(t.Context()); err != nil {
					t.Error(err)
				}
				if n := len(wire.Sent()); n != 4 {
					t.Errorf("%d requests", n)
				}
				if err := g.Release(t.Context()); err != nil {
					t.Errorf("again: %v", err)
				}
				if n := len(wire.Sent()); n != 0 {
					t.Errorf("again: %d requests", n)
				}
			})
		})
	}
}

func TestTrustInAllEndsBeforeTheirReleaseIsSent(t *testing.T) {
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

func TestAReleaseJoinsTheErrorsOfItsLocks(t *testing.T) {
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

// A transaction that shows another's grant has settled that lock: a release of it alone
// could only lose its reply, and then nobody would know.
func TestALockThatATransactionShowsToBeLostIsReleasedNoMore(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		g := w.AcquireAll(c, leasehold.Keys("a", "b"))
		w.Update("b", map[string]types.AttributeValue{"grantId": lab.Str("another"), "recordVersionNumber": lab.Str("another")})
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Releases() && slices.Equal(r.Keys(), []string{"b"}) {
				return lab.LoseReply(r)
			}
			return r.Send()
		})
		var lost *leasehold.LostError
		if err := g.Release(t.Context()); !errors.As(err, &lost) || lost.Key.Partition != "b" || lost.Reason != leasehold.LostReplaced {
			t.Errorf("error %v", err)
		}
		if held := w.HeldAmong(leasehold.Keys("a")); len(held) > 0 {
			t.Errorf("left held: %v", held)
		}
	})
}

func TestKeysReleasedUnseenMayBeAnothersByNow(t *testing.T) {
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

func TestAKeyThatCouldNotBeReleasedTogetherIsHandedOver(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		g := w.AcquireAll(c, leasehold.Keys("a", "b"))
		next := make(chan *leasehold.Lock, 1)
		go func() { next <- w.Acquire(c, "a") }()
		lab.Elapse(0)
		wire.Sent()
		wire.SetFault(lab.Once(lab.Call.Releases, func(*lab.Request) (*http.Response, error) {
			return lab.Refusal(400, "AccessDeniedException"), nil
		}))
		if err := g.Release(t.Context()); err != nil {
			t.Error(err)
		}
		heir := <-next
		sent := wire.Sent()
		if len(sent) != 3 || !slices.ContainsFunc(sent, lab.Call.HandsOver) {
			t.Errorf("sent %v", lab.Ops(sent))
		}
		w.Release(heir)
	})
}
