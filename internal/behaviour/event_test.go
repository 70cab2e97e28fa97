package behaviour_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// eventLog collects the events of a client.
type eventLog struct {
	mu     sync.Mutex
	events []leasehold.Event
}

func (l *eventLog) onEvent(_ context.Context, e leasehold.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

// sums adds up the requests and the held times of the events.
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

func TestEachRequestAndHeldTimeIsCountedInOneEvent(t *testing.T) {
	throttled := lab.Answer(func() *http.Response { return lab.Refusal(400, "ThrottlingException") })
	for name, tc := range map[string]struct {
		held time.Duration
		do   func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire)
	}{
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
			lock := w.Acquire(c, "job")
			lab.Elapse(time.Second)
			if err := lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"))); err != nil {
				t.Error(err)
			}
			wire.SetFault(nil)
			synctest.Wait()
			w.Release(lock)
		}},
		"a commit that releases": {time.Second, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
			lock := w.Acquire(c, "job")
			lab.Elapse(time.Second)
			if err := lock.CommitAndRelease(t.Context(), lab.Writes(lab.Note("a", "1"))); err != nil {
				t.Error(err)
			}
		}},
		"a commit that releases, and finds the lock gone": {time.Second, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
			lock := w.Acquire(c, "job")
			lab.Elapse(time.Second)
			w.Steal("job")
			if err := lock.CommitAndRelease(t.Context(), lab.Writes(lab.Note("a", "1"))); !errors.Is(err, leasehold.ErrLost) {
				t.Error(err)
			}
		}},
		"a commit that releases, and whose write fails": {time.Second, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
			lock := w.Acquire(c, "job")
			lab.Elapse(time.Second)
			var failed *leasehold.CommitError
			if err := lock.CommitAndRelease(t.Context(), lab.Writes(lab.NoteIf("a", "1"))); !errors.As(err, &failed) {
				t.Error(err)
			}
		}},
		"a release without an answer, called again": {time.Second, func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire) {
			lock := w.Acquire(c, "job")
			lab.Elapse(time.Second)
			wire.SetFault(lab.Cut)
			ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
			defer cancel()
			if err := lock.Release(ctx); !errors.Is(err, leasehold.ErrUnknownOutcome) {
				t.Error(err)
			}
			lab.Elapse(7 * time.Second)
			wire.SetFault(nil)
			w.Release(lock)
		}},
		"a release of a lock that has been lost": {18 * time.Second, func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire) {
			lock := w.Acquire(c, "job", leasehold.WithoutRenewal())
			lab.Elapse(25 * time.Second)
			if err := lock.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) {
				t.Error(err)
			}
		}},
		"renewals without an answer, until the record is read": {5 * time.Minute, func(_ *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire) {
			lock := w.Acquire(c, "job", leasehold.WithLease(10*time.Minute))
			wire.SetFault(func(*lab.Request) (*http.Response, error) {
				return nil, lab.ErrReset
			})
			lab.Elapse(5 * time.Minute)
			wire.SetFault(nil)
			w.Release(lock)
		}},
		"a key that is handed over": {4 * time.Second, func(_ *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
			first := w.Acquire(c, "job")
			next := make(chan *leasehold.Lock, 1)
			go func() { next <- w.Acquire(c, "job") }()
			lab.Elapse(time.Second)
			w.Release(first)
			second := <-next
			lab.Elapse(3 * time.Second)
			w.Release(second)
		}},
		"several keys": {3 * time.Second, func(t *testing.T, _ *lab.World, c *leasehold.Client, _ *lab.Wire) {
			g, err := c.AcquireAll(t.Context(), leasehold.Keys("x", "y", "z"))
			if err != nil {
				t.Fatal(err)
			}
			lab.Elapse(time.Second)
			if err := g.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}},
		"Close": {2 * time.Second, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
			w.Acquire(c, "x")
			w.Acquire(c, "y")
			lab.Elapse(time.Second)
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				var log eventLog
				cfg := lab.Config()
				cfg.OnEvent = log.onEvent
				c, wire := w.Work().Client(cfg)
				tc.do(t, w, c, wire)
				synctest.Wait()
				requests, held := log.sums()
				if sent := len(wire.Sent()); requests != sent {
					t.Errorf("%d requests were sent, the events tell of %d", sent, requests)
				}
				if held.Truncate(time.Second) != tc.held { // held is truncated, because a random pause comes before a repeated request
					t.Errorf("held for %v, the events tell of %v", tc.held, held)
				}
			})
		})
	}
}

func TestOnEventMayUseLockOfEvent(t *testing.T) {
	refuse := func(r *lab.Request) (*http.Response, error) {
		if r.Renews() {
			return lab.Refusal(500, "InternalServerError"), nil
		}
		return r.Send()
	}
	for _, kind := range []leasehold.EventKind{leasehold.EventRenewed, leasehold.EventRenewError, leasehold.EventCommitted} {
		for name, use := range map[string]func(context.Context, *leasehold.Lock) error{
			"Release": func(ctx context.Context, l *leasehold.Lock) error { return l.Release(ctx) },
			"Commit": func(ctx context.Context, l *leasehold.Lock) error {
				return l.Commit(ctx, lab.Writes(lab.Note("a", "1")))
			},
		} {
			t.Run(string(kind)+", "+name, func(t *testing.T) {
				lab.InBubble(t, func(t *testing.T, w *lab.World) {
					var held atomic.Pointer[leasehold.Lock]
					var told atomic.Bool
					used := make(chan error, 1)
					cfg := lab.Config()
					cfg.OnEvent = func(ctx context.Context, e leasehold.Event) {
						if lock := held.Load(); e.Kind == kind && lock != nil && !told.Swap(true) {
							used <- use(ctx, lock)
						}
					}
					c, wire := w.Work().Client(cfg)
					lock := w.Acquire(c, "job")
					held.Store(lock)
					switch kind {
					case leasehold.EventRenewError:
						wire.SetFault(refuse)
					case leasehold.EventCommitted:
						go func() { _ = lock.Commit(t.Context(), nil) }()
					}
					select {
					case err := <-used:
						if err != nil {
							t.Error(err)
						}
					case <-time.After(12 * time.Second): // 12 s is less than the 18 s for which the lock is trusted
						t.Error("it waits for the event that it was called from")
					}
					wire.SetFault(nil)
					lab.Elapse(time.Minute)
					_ = lock.Release(t.Context())
				})
			})
		}
	}
}

func TestEventContextHasValuesButNoCancellationOfCaller(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := lab.Config()
		cfg.OnEvent = func(ctx context.Context, e leasehold.Event) {
			if ctx.Err() != nil {
				t.Errorf("%s: the context has ended: %v", e.Kind, ctx.Err())
			}
		}
		c, _ := w.Client(cfg)
		lock := w.Acquire(c, "job")
		lab.Elapse(10 * time.Second)
		w.Release(lock)
	})
}
