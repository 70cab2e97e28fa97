package leasehold_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
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

// sums are the requests and the times held that the events tell.
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

func TestEventsTellARequestAndATimeHeldOnce(t *testing.T) {
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
				if held.Truncate(time.Second) != tc.held { // a repeated request comes after a random pause
					t.Errorf("held for %v, the events tell of %v", tc.held, held)
				}
			})
		})
	}
}
