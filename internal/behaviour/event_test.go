package behaviour_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// heldForSecond acquires a lock, lets one second pass, and returns the lock.
func heldForSecond(w *lab.World, c *leasehold.Client) *leasehold.Lock {
	lock := w.Acquire(c, "job")
	lab.Elapse(time.Second)
	return lock
}

// sums returns two sums over the collected events: the number of requests, and the time for which
// locks were held. The number of requests leaves out EventThrottled events, because the last event
// of the same call includes their requests, too.
func (l *eventLog) sums() (requests int, held time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		held += e.Held
		if e.Kind != leasehold.EventThrottled {
			requests += e.Requests
		}
	}
	return requests, held
}

func TestEventsAccountForEveryRequestAndAllHoldTime(t *testing.T) {
	throttled := lab.Refused("ThrottlingException")
	type row struct {
		held time.Duration
		do   func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire)
	}
	lab.Each(t, map[string]row{
		"a grant that was throttled": {0, func(_ *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire) {
			wire.SetFault(lab.Once(lab.Call.Grants, throttled))
			w.Release(w.Acquire(c, "job"))
		}},
		"a renewal that was throttled": {time.Minute, func(_ *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire) {
			wire.SetFault(lab.Once(lab.Call.Renews, throttled))
			lock := w.Acquire(c, "job")
			lab.Elapse(time.Minute)
			w.Release(lock)
		}},
		"a commit that was throttled": {time.Second, func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire) {
			wire.SetFault(lab.Once(lab.Call.Commits, throttled))
			lock := heldForSecond(w, c)
			lab.WantErr(t, "Commit", lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"))), nil)
			wire.SetFault(nil)
			synctest.Wait()
			w.Release(lock)
		}},
		"CommitAndRelease": {time.Second, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
			lock := heldForSecond(w, c)
			lab.WantErr(t, "CommitAndRelease", lock.CommitAndRelease(t.Context(), lab.Writes(lab.Note("a", "1"))), nil)
		}},
		"CommitAndRelease of a lost lock": {time.Second, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
			lock := heldForSecond(w, c)
			w.Steal("job")
			lab.WantErr(t, "CommitAndRelease", lock.CommitAndRelease(t.Context(), lab.Writes(lab.Note("a", "1"))), leasehold.ErrLost)
		}},
		"CommitAndRelease whose write fails": {time.Second, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
			lock := heldForSecond(w, c)
			lab.WantAs[*leasehold.CommitError](t, "commit and release", lock.CommitAndRelease(t.Context(), lab.Writes(lab.NoteIf("a", "1"))))
		}},
		"an unanswered release, called again": {time.Second, func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire) {
			lock := heldForSecond(w, c)
			wire.SetFault(lab.Cut)
			lab.WantErr(t, "Release", lock.Release(w.Within(7*time.Second)), leasehold.ErrUnknownOutcome)
			lab.Elapse(7 * time.Second)
			wire.SetFault(nil)
			w.Release(lock)
		}},
		"a release of a lost lock": {18 * time.Second, func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire) {
			lock := w.Acquire(c, "job", leasehold.WithoutRenewal())
			lab.Elapse(25 * time.Second)
			lab.WantErr(t, "Release", lock.Release(t.Context()), leasehold.ErrLost)
		}},
		"unanswered renewals": {5 * time.Minute, func(_ *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire) {
			lock := w.Acquire(c, "job", leasehold.WithLease(10*time.Minute))
			wire.SetFault(lab.Drop)
			lab.Elapse(5 * time.Minute)
			wire.SetFault(nil)
			w.Release(lock)
		}},
		"a key that is handed over": {4 * time.Second, func(_ *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
			first := w.Acquire(c, "job")
			next := w.Queue(c, "job")
			lab.Elapse(time.Second)
			w.Release(first)
			second := <-next
			lab.Elapse(3 * time.Second)
			w.Release(second)
		}},
		"a wait for a lock under a shared lease, whose client dies": {0, func(_ *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
			other, dies := w.Client(lab.SharedConfig())
			next := w.Queue(c, w.Acquire(other, "job").Key().Partition)
			lab.Elapse(30 * time.Second)
			dies.SetFault(lab.Cut)
			w.Release(<-next)
		}},
		"several keys": {3 * time.Second, func(_ *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
			g := w.AcquireAll(c, leasehold.Keys("x", "y", "z"))
			lab.Elapse(time.Second)
			w.Release(g)
		}},
		"Close": {2 * time.Second, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
			w.Acquire(c, "x")
			w.Acquire(c, "y")
			lab.Elapse(time.Second)
			closes(w, c)
		}},
	}, func(t *testing.T, w *lab.World, tc row) {
		c, wire, log := logged(w.Work(), lab.Config())
		tc.do(t, w, c, wire)
		synctest.Wait()
		requests, held := log.sums()
		lab.Want(t, "requests in the events", requests, len(wire.Sent()))
		// A repeated request comes after a random pause, so only full seconds are compared.
		lab.Want(t, "time held according to the events", held.Truncate(time.Second), tc.held)
	})
}

func TestOnEventCallbackCanReleaseLockOrCommitUnderIt(t *testing.T) {
	lab.Each(t, map[string]func(context.Context, *leasehold.Lock) error{
		"Release": func(ctx context.Context, l *leasehold.Lock) error { return l.Release(ctx) },
		"Commit": func(ctx context.Context, l *leasehold.Lock) error {
			return l.Commit(ctx, lab.Writes(lab.Note("a", "1")))
		},
	}, func(t *testing.T, w *lab.World, use func(context.Context, *leasehold.Lock) error) {
		var lock *leasehold.Lock
		var told atomic.Bool
		used := make(chan error, 1)
		cfg := lab.Config()
		cfg.OnEvent = func(ctx context.Context, e leasehold.Event) {
			if e.Kind == leasehold.EventCommitted && !told.Swap(true) {
				used <- use(ctx, lock)
			}
		}
		c, _ := w.Work().Client(cfg)
		lock = w.Acquire(c, "job")
		go func() { _ = lock.Commit(t.Context(), nil) }()
		select {
		case err := <-used:
			lab.WantErr(t, "the call in OnEvent", err, nil)
		// OnEvent calls Release or Commit. Both must return while OnEvent is still running. The
		// limit of 12 s is enough for the call, and passes before the lock expires: the holder
		// trusts the lock for 18 s.
		case <-time.After(12 * time.Second):
			t.Error("the call in OnEvent waits until OnEvent returns")
		}
		lab.Elapse(time.Minute)
		_ = lock.Release(t.Context())
	})
}

func TestContextPassedToEventCallbackIsNotCancelled(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := lab.Config()
		cfg.OnEvent = func(ctx context.Context, e leasehold.Event) {
			lab.WantErr(t, fmt.Sprint(e.Kind, ": the event's context"), ctx.Err(), nil)
		}
		_, _, lock := w.Holding(cfg)
		lab.Elapse(10 * time.Second)
		w.Release(lock)
	})
}

func TestStatsShowNumberOfHeldLocksAndShortestTimeUntilExpiry(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
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

func TestRenewalEventStatesHowLongRenewalRequestTook(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := lab.Config()
		events := lab.Events(&cfg, leasehold.EventRenewed)
		_, wire, lock := w.Holding(cfg)
		wire.SetFault(lab.On(lab.Call.Renews, lab.Slow(300*time.Millisecond)))
		lab.Elapse(6 * time.Second)
		lab.Want(t, "time of the first renewal's request", events()[0].Took, 300*time.Millisecond)
		w.Release(lock)
	})
}
