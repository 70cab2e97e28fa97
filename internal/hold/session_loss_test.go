package hold_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// slowHandler is a log handler that takes a millisecond to log a line.
type slowHandler struct{ slog.Handler }

func (h slowHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h slowHandler) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		time.Sleep(time.Millisecond)
	}
	return nil
}

func TestContextsOfLostLocksEndDespiteSlowEventHandler(t *testing.T) {
	const locks = 2_500
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := lab.SharedConfig()
		cfg.Logger = slog.New(slowHandler{slog.DiscardHandler})
		var told atomic.Int64
		cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
			if e.Kind == leasehold.EventLost {
				told.Add(1)
				time.Sleep(time.Millisecond)
			}
		}
		c, wire := w.Client(cfg)
		held := make([]*leasehold.Lock, locks)
		// Store the channels now. After the expiry, a call of Done would itself end the context, but
		// this test checks that the client ends it.
		ended := make([]<-chan struct{}, locks)
		for i := range held {
			held[i] = w.Acquire(c, fmt.Sprint("lock/", i))
			ended[i] = held[i].Context().Done()
		}
		var warned atomic.Int64
		warning := w.Acquire(c, "warning", leasehold.WithExpiryWarning(0, func(*leasehold.Lock) { warned.Add(1) }))
		wire.SetFault(lab.Cut)
		until := warning.TrustedUntil()
		time.Sleep(time.Until(until) + 5*time.Millisecond)
		alive := 0
		for _, done := range ended {
			select {
			case <-done:
			default:
				alive++
			}
		}
		lab.Want(t, "contexts that have not ended", alive, 0)
		lab.Want(t, "warnings", warned.Load(), 1)
		began := time.Now()
		lab.WantErr(t, "lock", held[locks-1].Err(), leasehold.ErrLost)
		lab.Want(t, "returned after", time.Since(began), 0)
		lab.Elapse(10 * time.Second)
		lab.Want(t, "losses reported", told.Load(), locks+1)
	})
}

func TestMethodErrOfLostLockDoesNotWaitUntilOnEventReturns(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		k := &lab.Jumps{}
		cfg := lab.SharedConfig()
		cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
			if e.Kind == leasehold.EventLost {
				time.Sleep(time.Second)
			}
		}
		c, _ := w.Client(cfg, k.Edit)
		lock := w.Acquire(c, "job")
		others := w.AcquireMany(c, "lock", 9)
		k.Boot.Store(int64(19 * time.Second)) // the machine was suspended, so no timer has fired
		looked := time.Now()
		lab.WantErr(t, "lock after suspension", lock.Err(), leasehold.ErrLost)
		lab.WantTook(t, "duration of a check of one lock", looked, 0, time.Second)
		for _, other := range others {
			lab.WantFailed(t, "context of "+other.Key().String(), other.Context().Err())
		}
		lab.Elapse(time.Minute)
	})
}

func TestAllLocksAreLostIfSessionIsLost(t *testing.T) {
	lab.Each(t, map[string]func(w *lab.World, row string){
		"deleted": (*lab.World).Delete, "marked dead": (*lab.World).MarkDead,
	}, func(t *testing.T, w *lab.World, loss func(w *lab.World, row string)) {
		c, _ := w.Client(lab.SharedConfig())
		a, b := w.Acquire(c, "a"), w.Acquire(c, "b")
		loss(w, w.Sessions()[0])
		lab.Elapse(5 * time.Second) // let the session be renewed
		for _, lock := range []*leasehold.Lock{a, b} {
			lab.Want(t, lock.Key().String(), reasonOf(lock.Err()), leasehold.LostBroken)
		}
		again := w.Acquire(c, "c")
		lab.WantErr(t, "new lock", again.Err(), nil)
		lab.Want(t, "locks held", len(c.Held()), 1)
		w.Release(again)
	})
}

func TestLockGrantedUnderDeletedSessionIsReportedAsLost(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := lab.SharedConfig()
		cfg.Lease = 4 * time.Second
		losses := lab.Events(&cfg, leasehold.EventLost)
		c, wire := w.Client(cfg)
		w.Acquire(c, "other")
		wire.SetFault(lab.Once(lab.Call.Grants, lab.Slow(2900*time.Millisecond)))
		// The session's next renewal finds no row. The client gets the reply to that renewal before
		// the reply to the grant, which is delayed.
		w.Delete(w.Sessions()[0])
		warned := make(chan struct{}, 1)
		// Until the checks below are done, the test calls no method of this lock. A method would itself
		// end the lock, but the test checks that the client ends it.
		lock := w.Acquire(c, "job", leasehold.WithExpiryWarning(time.Second, func(*leasehold.Lock) { warned <- struct{}{} }))
		lab.Elapse(0)
		told := 0
		for _, e := range losses() {
			if e.Key.Partition == "job" {
				told++
			}
		}
		lab.Want(t, "losses reported", told, 1)
		lab.Want(t, "warnings", len(warned), 1)
		for _, held := range c.Held() {
			if held.Key().Partition == "job" {
				t.Error("the client holds a lock of a session that has ended")
			}
		}
		lab.WantErr(t, "lock under an ended session", lock.Err(), leasehold.ErrLost)
		_ = c.Close(t.Context())
	})
}

func TestTakeoverIsNotReportedAsBreak(t *testing.T) {
	lab.Each(t, map[string]bool{"loss noticed before": true, "loss not noticed": false}, func(t *testing.T, w *lab.World, looked bool) {
		k := &lab.Jumps{}
		c, _ := w.Work().Client(lab.SharedConfig(), k.Edit)
		g := w.AcquireAll(c, leasehold.Keys("a", "b"))
		taken, left := g.Locks()[0], g.Locks()[1]
		k.Boot.Store(int64(30 * time.Second))
		w.MarkDead(w.Sessions()[0]) // a waiter marks the session as dead when it takes a lock over
		w.Steal("a")
		if looked && (reasonOf(taken.Err()) != leasehold.LostPaused || reasonOf(left.Err()) != leasehold.LostPaused) {
			t.Errorf("Err before the failed guards: %v", left.Err())
		}
		failed := w.Transact(g.Guards()...)
		if err := g.GuardError(failed, 0); reasonOf(err) != leasehold.LostReplaced || !errors.Is(err, failed) {
			t.Errorf("lock that was taken over: %v", err)
		}
		failed = w.Transact(left.Guards()...)
		if err := left.GuardError(failed, 0); reasonOf(err) != leasehold.LostPaused || !errors.Is(err, failed) {
			t.Errorf("lock that was not taken over: %v", err)
		}
		if reasonOf(left.Err()) != leasehold.LostPaused || looked && reasonOf(taken.Err()) != leasehold.LostPaused {
			t.Errorf("ended by %v and %v", taken.Err(), left.Err())
		}
		_ = c.Close(t.Context())
	})
}

func TestLossCountsAsExpiryIfSessionExpiresBeforeItIsMarkedDead(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		k := &lab.Jumps{}
		c, wire := w.Client(lab.SharedConfig(), k.Edit)
		lock := w.Acquire(c, "job")
		wire.SetFault(lab.Once(lab.Call.RenewsSession, func(r *lab.Request) (*http.Response, error) {
			k.Boot.Store(int64(30 * time.Second))
			w.MarkDead(w.Sessions()[0])
			return r.Send()
		}))
		lab.Elapse(6 * time.Second)
		lab.Want(t, "reason", reasonOf(lock.Err()), leasehold.LostExpired)
		_ = c.Close(t.Context())
	})
}
