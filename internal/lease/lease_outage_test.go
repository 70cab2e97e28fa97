package lease_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
)

// inOutage begins an outage for a new client with HoldThroughOutage that holds the key
// "job". It returns the client, its simulated network, and the lock. Other clients are not
// in the outage.
func inOutage(w *lab.World) (*leasehold.Client, *lab.Wire, *leasehold.Lock) {
	w.T.Helper()
	c, wire, lock := w.Holding(lab.OutageConfig())
	wire.SetFault(lab.Out)
	return c, wire, lock
}

func TestLockIsHeldThroughOutageOnlyIfConfigured(t *testing.T) { // awslabs has this option, too: withHoldLockOnServiceUnavailable
	lab.Each(t, map[string]bool{"on request": true, "by default": false}, func(t *testing.T, w *lab.World, hold bool) {
		_, wire, lock := w.Holding(lab.ConfigOf("locks", layout.AWSLabs{HoldThroughOutage: hold}))
		wire.SetFault(lab.Out)
		lab.Elapse(5 * time.Minute)
		if err := lock.Err(); hold != (err == nil) {
			t.Fatalf("after five minutes: %v", err)
		}
		wire.SetFault(nil)
		lab.Elapse(10 * time.Second)
		if hold && time.Until(lock.TrustedUntil()) < 10*time.Second {
			t.Errorf("not renewed after the outage: trusted until %v", lock.TrustedUntil())
		}
		_ = lock.Release(t.Context())
	})
}

func TestLockGrantedToAnotherDuringOutageIsLost(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, wire, lock := inOutage(w)
		_, _, theirs := w.Holding(lab.OutageConfig())
		lab.WantErr(t, "lock during the outage", lock.Err(), nil)
		wire.SetFault(nil)
		lab.Elapse(10 * time.Second)
		var lost *leasehold.LostError
		if !errors.As(lock.Err(), &lost) || lost.Reason != leasehold.LostReplaced {
			t.Errorf("after the outage: %v", lock.Err())
		}
		w.Release(theirs)
	})
}

func TestUnansweredRequestsDoNotCountAsOutage(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, wire, lock := inOutage(w)
		lab.Elapse(30 * time.Second)
		lab.WantErr(t, "lock", lock.Err(), nil)
		wire.SetFault(lab.Drop)
		lab.Elapse(10 * time.Second)
		lab.WantErr(t, "no reply at all", lock.Err(), leasehold.ErrLost)
	})
}

func TestReleaseOfLockTakenOverInOutageReportsError(t *testing.T) {
	type row struct {
		commit  func(ctx context.Context, g *leasehold.Group) error // nil if no commit precedes the release
		release func(ctx context.Context, g *leasehold.Group) error
	}
	one := func(ctx context.Context, g *leasehold.Group) error { return g.Locks()[0].Release(ctx) }
	all := func(ctx context.Context, g *leasehold.Group) error { return g.Release(ctx) }
	lab.Each(t, map[string]row{
		"a release of one": {nil, one}, "a commit of one": {commitOfOne, one},
		"a release of all": {nil, all}, "a commit of all": {commitOfAll, all},
	}, func(t *testing.T, w *lab.World, tc row) {
		c, wire := w.Work().Client(lab.OutageConfig())
		g := w.AcquireAll(c, leasehold.Keys("x", "y"))
		wire.SetFault(lab.Out) // only this client is in the outage
		other, _ := w.Client(lab.OutageConfig())
		theirs := w.AcquireAll(other, leasehold.Keys("x", "y"))
		lab.WantErr(t, "group during the outage", g.Err(), nil)
		var sent atomic.Int64
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if sent.Add(1) <= 3 { // the first three requests are lost
				return nil, lab.ErrReset
			}
			return r.Send()
		})
		if tc.commit != nil {
			lab.WantFailed(t, "commit after another grant", tc.commit(t.Context(), g))
		}
		lab.WantFailed(t, "release after another grant", tc.release(t.Context(), g))
		w.WantLog()
		lab.WantErr(t, "release", theirs.Release(t.Context()), nil)
		_ = c.Close(t.Context())
	})
}

func commitOfOne(ctx context.Context, g *leasehold.Group) error {
	return g.Locks()[0].CommitAndRelease(ctx, lab.Writes(lab.Note("a", "1")))
}

func commitOfAll(ctx context.Context, g *leasehold.Group) error {
	return g.CommitAndRelease(ctx, lab.Writes(lab.Note("a", "1")))
}

func TestCommitAndReleaseSucceedsAfterOutageWithoutNewGrant(t *testing.T) {
	lab.Each(t, map[string]func(ctx context.Context, g *leasehold.Group) error{
		"of one": commitOfOne, "of all": commitOfAll,
	}, func(t *testing.T, w *lab.World, commit func(ctx context.Context, g *leasehold.Group) error) {
		c, wire := w.Work().Client(lab.OutageConfig())
		g := w.AcquireAll(c, leasehold.Keys("x", "y"))
		wire.SetFault(lab.Out)
		lab.Elapse(time.Minute)
		wire.SetFault(nil)
		lab.WantErr(t, "commit", commit(t.Context(), g), nil)
		w.WantLog("1")
		_ = g.Release(t.Context())
	})
}

func TestLockDetachedInOutageIsResumedOrLost(t *testing.T) {
	lab.Each(t, map[string]bool{"resumed": false, "lost": true}, func(t *testing.T, w *lab.World, taken bool) {
		_, _, lock := inOutage(w)
		lab.Elapse(30 * time.Second)
		grant := w.Detach(lock)
		other, _ := w.Client(lab.OutageConfig())
		if taken {
			w.Release(w.Acquire(other, "job"))
		}
		resumed, err := other.Resume(t.Context(), grant)
		if taken != errors.Is(err, leasehold.ErrLost) || taken == (err == nil) {
			t.Errorf("resumed: %v", err)
		}
		if err == nil {
			w.Release(resumed)
		}
	})
}

func TestManyLocksSurviveOutage(t *testing.T) {
	lab.Each(t, map[string]lab.Fault{
		"all is throttled": lab.Throttled,
		"errors are slow": func(r *lab.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			return lab.Out(r)
		},
	}, func(t *testing.T, w *lab.World, fault lab.Fault) {
		c, wire := w.Client(lab.OutageConfig())
		locks := w.AcquireMany(c, "job", lab.Crowd())
		wire.SetFault(fault)
		lab.Elapse(time.Minute)
		lab.Want(t, "lost locks", lab.Lost(locks), 0)
		wire.SetFault(nil)
		lab.Elapse(20 * time.Second) // let the client renew at its usual rate again
		if s := c.Stats(); s.Held != len(locks) || s.MinRemaining < 10*time.Second {
			t.Errorf("after the outage: %+v", s)
		}
		_ = c.Close(t.Context())
	})
}

func TestProcessPausedDuringOutageLosesLock(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		k := &lab.Jumps{}
		c, wire := w.Client(lab.OutageConfig(), k.Edit)
		lock := w.Acquire(c, "job")
		wire.SetFault(lab.Out)
		lab.Elapse(time.Minute)
		lab.WantErr(t, "lock during the outage", lock.Err(), nil)
		// The machine was suspended for longer than a lease. The client has seen no failed
		// request since, so it cannot assume that the outage still lasts.
		k.Boot.Store(int64(21 * time.Second))
		lab.WantErr(t, "believed in after a pause longer than a lease", lock.Err(), leasehold.ErrLost)
		_ = lock.Release(t.Context())
	})
}

func TestClientDoesNotTakeOverOwnLockDuringOutage(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire, lock := w.Holding(lab.OutageConfig())
		g := w.Detach(lock)
		ctx, leave := context.WithCancel(t.Context())
		ended := lab.Go(func() error { return lab.ErrorOf(c.Acquire(ctx, "job")) }) // this call is first among the client's own waiters for the key
		lock = w.Resume(c, g)
		wire.SetFault(lab.On(lab.Call.Renews, lab.Out))
		lab.Elapse(5 * time.Minute)
		leave()
		lab.WantFailed(t, "acquire beside a trusted lock", <-ended)
		wire.SetFault(nil)
		lab.Elapse(10 * time.Second)
		lab.WantErr(t, "after the outage", lock.Err(), nil)
		w.Release(lock)
	})
}
