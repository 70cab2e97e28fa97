package lease_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/hold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
)

// inOutage makes a client with HoldThroughOutage that holds the key "job", and then begins an
// outage for this client alone. It returns the client, its simulated network, and the lock.
func inOutage(w *lab.World) (*leasehold.Client, *lab.Wire, *leasehold.Lock) {
	w.T.Helper()
	c, wire, lock := w.Holding(lab.OutageConfig())
	wire.SetFault(lab.Out)
	return c, wire, lock
}

func TestLockIsHeldThroughOutageOnlyIfHoldThroughOutageIsSet(t *testing.T) { // the Java client of awslabs has this option, too: withHoldLockOnServiceUnavailable
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

func TestLockIsLostIfTakenOverDuringOutage(t *testing.T) {
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

func TestLockIsLostInOutageIfRequestsGetNoReply(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, wire, lock := inOutage(w)
		lab.Elapse(30 * time.Second)
		lab.WantErr(t, "lock", lock.Err(), nil)
		wire.SetFault(lab.Drop)
		lab.Elapse(10 * time.Second)
		lab.WantErr(t, "lock without replies", lock.Err(), leasehold.ErrLost)
	})
}

func TestReleaseFailsIfLockIsTakenOverInOutage(t *testing.T) {
	type row struct {
		commit  func(ctx context.Context, g *leasehold.Group) error // nil if no commit precedes the release
		release func(ctx context.Context, g *leasehold.Group) error
	}
	one := func(ctx context.Context, g *leasehold.Group) error { return g.Locks()[0].Release(ctx) }
	all := func(ctx context.Context, g *leasehold.Group) error { return g.Release(ctx) }
	lab.Each(t, map[string]row{
		"release of one": {nil, one}, "commit of one": {commitOfOne, one},
		"release of all": {nil, all}, "commit of all": {commitOfAll, all},
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

func TestCommitAndReleaseSucceedsAfterOutage(t *testing.T) {
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

func TestLockDetachedInOutageCanBeResumed(t *testing.T) {
	lab.Each(t, map[string]error{"resumed": nil, "lost": leasehold.ErrLost}, func(t *testing.T, w *lab.World, want error) {
		_, _, lock := inOutage(w)
		lab.Elapse(30 * time.Second)
		grant := w.Detach(lock)
		other, _ := w.Client(lab.OutageConfig())
		if want != nil {
			w.Release(w.Acquire(other, "job"))
		}
		resumed, err := other.Resume(t.Context(), grant)
		lab.WantErr(t, "resume", err, want)
		if err == nil {
			w.Release(resumed)
		}
	})
}

func TestOptionHoldThroughOutageKeepsManyLocksDuringOutage(t *testing.T) {
	lab.Each(t, map[string]lab.Fault{
		"all requests are throttled": lab.Throttled,
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

func TestLockIsLostIfMachineIsSuspendedDuringOutage(t *testing.T) {
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
		lab.WantErr(t, "lock after a suspend longer than a lease", lock.Err(), leasehold.ErrLost)
		_ = lock.Release(t.Context())
	})
}

func TestClientDoesNotTakeOverOwnLockInOutage(t *testing.T) {
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

func TestExpiryWarningIsGivenEvenAfterMachineWasSuspended(t *testing.T) { // dynamolock gives no warning if its process wakes up after the expiry
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		k := &lab.Jumps{}
		c, wire := w.Client(lab.Config(), k.Edit)
		var warned []time.Time
		warning := leasehold.WithExpiryWarning(5*time.Second, func(*leasehold.Lock) { warned = append(warned, time.Now()) })
		lock := w.Acquire(c, "job", warning)
		lab.Elapse(time.Minute)
		lab.Want(t, "warnings while renewals succeed", len(warned), 0)
		wire.SetFault(lab.Cut)
		until := lock.TrustedUntil()
		lab.Elapse(time.Minute)
		if len(warned) != 1 || !warned[0].Equal(until.Add(-5*time.Second)) {
			t.Errorf("warned %d times, trust ended at %v", len(warned), until)
		}
		wire.SetFault(nil)
		_ = lock.Release(t.Context())

		warned = nil
		paused := w.Acquire(c, "other", warning)
		k.Boot.Store(int64(time.Hour)) // the clock jumps past the time of the warning and past the expiry
		lab.Elapse(10 * time.Second)
		lab.Want(t, "warnings after a suspend", len(warned), 1)
		_ = paused.Release(t.Context())
	})
}

func TestExpiryWarningCallbackMayUseLock(t *testing.T) {
	slow := func(r *lab.Request) (*http.Response, error) {
		if r.Grants() || r.Renews() {
			return lab.Slow(2900 * time.Millisecond)(r)
		}
		return r.Send()
	}
	lab.Each(t, map[string]func(w *lab.World, opts []leasehold.AcquireOption) (*leasehold.Client, *leasehold.Lock){
		"warning longer than lease": func(w *lab.World, opts []leasehold.AcquireOption) (*leasehold.Client, *leasehold.Lock) {
			c, _ := w.Client(lab.Config())
			return c, w.Acquire(c, "job", opts...)
		},
		"slow grant": func(w *lab.World, opts []leasehold.AcquireOption) (*leasehold.Client, *leasehold.Lock) {
			c, wire := w.Client(lab.Config())
			wire.SetFault(slow)
			return c, w.Acquire(c, "job", append(opts, leasehold.WithLease(4*time.Second))...)
		},
		"little left of a shared lease": func(w *lab.World, opts []leasehold.AcquireOption) (*leasehold.Client, *leasehold.Lock) {
			c, wire := w.Client(lab.SharedConfig())
			w.Acquire(c, "other")
			wire.SetFault(lab.On(lab.Call.RenewsSession, lab.Drop))
			lab.Elapse(17 * time.Second)
			return c, w.Acquire(c, "job", opts...)
		},
		"resumed": func(w *lab.World, opts []leasehold.AcquireOption) (*leasehold.Client, *leasehold.Lock) {
			c, wire := w.Client(lab.Config())
			g := w.Detach(w.Acquire(c, "job", leasehold.WithLease(4*time.Second)))
			wire.SetFault(slow)
			lock := w.Resume(c, g)
			return c, lab.Must(c.Acquire(lock.Context(), "job", append(opts, leasehold.Reentrant())...))(w.T)
		},
		"handed over": func(w *lab.World, opts []leasehold.AcquireOption) (*leasehold.Client, *leasehold.Lock) {
			c, wire, before := w.Holding(lab.Config())
			next := make(chan *leasehold.Lock, 1)
			go func() { next <- w.Acquire(c, "job", append(opts, leasehold.WithLease(4*time.Second))...) }()
			synctest.Wait()
			wire.SetFault(slow)
			w.Release(before)
			return c, <-next
		},
		"several keys": func(w *lab.World, opts []leasehold.AcquireOption) (*leasehold.Client, *leasehold.Lock) {
			c, wire := w.Client(lab.Config())
			wire.SetFault(slow)
			g := w.AcquireAll(c, leasehold.Keys("job", "other"), append(opts, leasehold.WithLease(8*time.Second))...)
			return c, g.Locks()[0]
		},
	}, func(t *testing.T, w *lab.World, acquire func(w *lab.World, opts []leasehold.AcquireOption) (*leasehold.Client, *leasehold.Lock)) {
		// There are so many warnings that the callbacks of the first ones run while the client is
		// still setting the last ones.
		const many = 100
		var given atomic.Int64
		var opts []leasehold.AcquireOption
		for range many {
			opts = append(opts, leasehold.WithExpiryWarning(time.Hour, func(l *leasehold.Lock) {
				given.Add(1)
				_, _, _ = l.Err(), l.Record(), l.TrustedUntil()
				_ = l.Context().Err()
			}))
		}
		c, lock := acquire(w, opts)
		synctest.Wait()
		if n := given.Load(); n < many || lock.Err() != nil {
			t.Errorf("%d of %d warnings were given: %v", n, many, lock.Err())
		}
		_ = c.Close(t.Context())
	})
}

func TestExpiryWarningCallbackMayReleaseLock(t *testing.T) {
	lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		c, _ := w.Client(cfg)
		for range 50 {
			lock := w.Acquire(c, "job", leasehold.WithExpiryWarning(time.Hour, func(l *leasehold.Lock) { _ = l.Release(context.Background()) }))
			<-lock.Context().Done()
			_ = lock.Release(t.Context())
		}
		lab.Want(t, "locks held", c.Stats().Held, 0)
		if cfg.SharedLease {
			lab.Want(t, "locks of the session", len(w.Session(c).(interface{ Locks() []*hold.Lock }).Locks()), 0)
		}
		_ = c.Close(t.Context())
	})
}
