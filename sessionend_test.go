package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
)

// slowHandler takes a millisecond for a line that is said aloud.
type slowHandler struct{ slog.Handler }

func (h slowHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h slowHandler) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		time.Sleep(time.Millisecond)
	}
	return nil
}

func TestEveryLockEndsBeforeTheEndOfTheirSessionIsTold(t *testing.T) {
	const locks = 2_500
	inBubble(t, func(t *testing.T, w *world) {
		cfg := sharedConfig()
		cfg.Logger = slog.New(slowHandler{slog.DiscardHandler})
		var told atomic.Int64
		cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
			if e.Kind == leasehold.EventLost {
				told.Add(1)
				time.Sleep(time.Millisecond)
			}
		}
		c, wire := w.client(cfg)
		held := make([]*leasehold.Lock, locks)
		ended := make([]<-chan struct{}, locks) // had before, for asking looks at the clock
		for i := range held {
			held[i] = w.acquire(c, fmt.Sprint("lock/", i))
			ended[i] = held[i].Context().Done()
		}
		var warned atomic.Int64
		warning := w.acquire(c, "warning", leasehold.WithExpiryWarning(0, func(*leasehold.Lock) { warned.Add(1) }))
		wire.setFault(cut)
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
		if alive != 0 || warned.Load() != 1 {
			t.Errorf("%d of %d contexts are alive 5 ms after the end of the trust, %d warnings", alive, locks, warned.Load())
		}
		began := time.Now()
		if err := held[locks-1].Err(); !errors.Is(err, leasehold.ErrLost) || time.Since(began) != 0 {
			t.Errorf("told after %v: %v", time.Since(began), err)
		}
		elapse(10 * time.Second)
		if n := told.Load(); n != locks+1 {
			t.Errorf("the loss of %d locks was told of", n)
		}
	})
}

func TestAFirstLookAtASessionThatHasEndedDoesNotTellOfItsOtherLocks(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var asleep atomic.Int64
		cfg := sharedConfig()
		cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
			if e.Kind == leasehold.EventLost {
				time.Sleep(time.Second)
			}
		}
		c, _ := w.client(cfg)
		began := time.Now()
		leasehold.SetClocks(c, func() (mono, boot time.Duration) {
			return time.Since(began), time.Since(began) + time.Duration(asleep.Load())
		})
		lock := w.acquire(c, "job")
		others := make([]*leasehold.Lock, 9)
		for i := range others {
			others[i] = w.acquire(c, fmt.Sprint("lock/", i))
		}
		asleep.Store(int64(19 * time.Second)) // no timer knows of it
		looked := time.Now()
		if err := lock.Err(); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("believed in: %v", err)
		}
		if took := time.Since(looked); took > time.Second {
			t.Errorf("a look took %v: it told of all the others", took)
		}
		for _, other := range others {
			if other.Context().Err() == nil {
				t.Errorf("%v is believed in", other.Key())
			}
		}
		elapse(time.Minute)
	})
}
