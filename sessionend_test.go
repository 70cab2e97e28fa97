package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
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
		ended := make([]<-chan struct{}, locks) // had before, for asking looks at the clock
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
		if alive != 0 || warned.Load() != 1 {
			t.Errorf("%d of %d contexts are alive 5 ms after the end of the trust, %d warnings", alive, locks, warned.Load())
		}
		began := time.Now()
		if err := held[locks-1].Err(); !errors.Is(err, leasehold.ErrLost) || time.Since(began) != 0 {
			t.Errorf("told after %v: %v", time.Since(began), err)
		}
		lab.Elapse(10 * time.Second)
		if n := told.Load(); n != locks+1 {
			t.Errorf("the loss of %d locks was told of", n)
		}
	})
}

func TestALockIsLostThatIsAskedBeforeTheEndOfItsSessionHasReachedIt(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.SharedConfig())
		lock := w.Acquire(c, "job")
		leasehold.EndSessionAlone(c, &leasehold.LostError{Reason: leasehold.LostBroken})
		var lost *leasehold.LostError
		if err := lock.Err(); !errors.As(err, &lost) || lost.Key != lock.Key() || lost.Reason != leasehold.LostBroken {
			t.Errorf("believed in: %v", err)
		}
		if lock.Context().Err() == nil {
			t.Error("its context lasts")
		}
		_ = c.Close(t.Context())
	})
}

func TestAFirstLookAtASessionThatHasEndedDoesNotTellOfItsOtherLocks(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		var asleep atomic.Int64
		cfg := lab.SharedConfig()
		cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
			if e.Kind == leasehold.EventLost {
				time.Sleep(time.Second)
			}
		}
		began := time.Now()
		c, _ := w.Client(cfg, lab.Clocks(func() (mono, boot time.Duration) {
			return time.Since(began), time.Since(began) + time.Duration(asleep.Load())
		}))
		lock := w.Acquire(c, "job")
		others := make([]*leasehold.Lock, 9)
		for i := range others {
			others[i] = w.Acquire(c, fmt.Sprint("lock/", i))
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
		lab.Elapse(time.Minute)
	})
}

// collect deletes what is due as DynamoDB's TTL does.
func collect(w *lab.World) {
	for _, item := range w.Scan() {
		due, err := strconv.ParseInt(lab.Number(item, "expiresAt"), 10, 64)
		if err == nil && time.Unix(due, 0).Before(time.Now()) {
			w.Delete(lab.Text(item, "key"))
		}
	}
}

func TestADeadSessionsRowOutlivesEveryRequestThatMayBeLateWhateverTheRetention(t *testing.T) {
	for _, retention := range []time.Duration{time.Second, 0, 365 * 24 * time.Hour, leasehold.Forever} {
		for name, end := range map[string]func(w *lab.World, c *leasehold.Client, wire *lab.Wire){
			"closed": func(w *lab.World, c *leasehold.Client, _ *lab.Wire) {
				if err := c.Close(w.T.Context()); err != nil {
					w.T.Error(err)
				}
			},
			"marked by a waiter": func(w *lab.World, _ *leasehold.Client, wire *lab.Wire) {
				wire.SetFault(lab.Cut)
				cfg := lab.Config()
				cfg.Retention = retention
				waiter, _ := w.Client(cfg)
				w.Release(w.Acquire(waiter, "job"))
			},
		} {
			t.Run(fmt.Sprint(retention, ", ", name), func(t *testing.T) {
				lab.InBubble(t, func(t *testing.T, w *lab.World) {
					cfg := lab.SharedConfig()
					cfg.Retention = retention
					c, wire := w.Client(cfg)
					var again func() (*http.Response, error)
					wire.SetFault(lab.Once(lab.Call.Grants, func(r *lab.Request) (*http.Response, error) {
						again = r.Send
						return r.Send()
					}))
					w.Acquire(c, "job")
					row := w.Sessions()[0]
					end(w, c, wire)
					lab.Elapse(24 * time.Hour)
					collect(w)
					_, _ = again()
					if lab.Text(w.Item(row), "dead") != "1" {
						t.Error("a session came back from the dead")
					}
					lab.Elapse(7 * 24 * time.Hour)
					collect(w)
					if w.Item(row) != nil {
						t.Error("nothing has collected the dead session's row")
					}
				})
			})
		}
	}
}
