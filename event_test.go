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
	throttled := answer(func() *http.Response { return refusal(400, "ThrottlingException") })
	for name, tc := range map[string]struct {
		held time.Duration
		do   func(t *testing.T, w *world, c *leasehold.Client, wire *wire)
	}{
		"a grant that was throttled": {0, func(_ *testing.T, w *world, c *leasehold.Client, wire *wire) {
			wire.setFault(once(call.grants, throttled))
			w.release(w.acquire(c, "job"))
		}},
		"a renewal that was throttled": {time.Minute, func(_ *testing.T, w *world, c *leasehold.Client, wire *wire) {
			wire.setFault(once(call.renews, throttled))
			lock := w.acquire(c, "job")
			elapse(time.Minute)
			w.release(lock)
		}},
		"a commit that was throttled": {time.Second, func(t *testing.T, w *world, c *leasehold.Client, wire *wire) {
			wire.setFault(once(call.commits, throttled))
			lock := w.acquire(c, "job")
			elapse(time.Second)
			if err := lock.Commit(t.Context(), writes(note("a", "1"))); err != nil {
				t.Error(err)
			}
			wire.setFault(nil)
			synctest.Wait()
			w.release(lock)
		}},
		"a commit that releases": {time.Second, func(t *testing.T, w *world, c *leasehold.Client, _ *wire) {
			lock := w.acquire(c, "job")
			elapse(time.Second)
			if err := lock.CommitAndRelease(t.Context(), writes(note("a", "1"))); err != nil {
				t.Error(err)
			}
		}},
		"a commit that releases, and finds the lock gone": {time.Second, func(t *testing.T, w *world, c *leasehold.Client, _ *wire) {
			lock := w.acquire(c, "job")
			elapse(time.Second)
			w.steal("job")
			if err := lock.CommitAndRelease(t.Context(), writes(note("a", "1"))); !errors.Is(err, leasehold.ErrLost) {
				t.Error(err)
			}
		}},
		"a commit that releases, and whose write fails": {time.Second, func(t *testing.T, w *world, c *leasehold.Client, _ *wire) {
			lock := w.acquire(c, "job")
			elapse(time.Second)
			var failed *leasehold.CommitError
			if err := lock.CommitAndRelease(t.Context(), writes(noteIf("a", "1"))); !errors.As(err, &failed) {
				t.Error(err)
			}
		}},
		"a release without an answer, called again": {time.Second, func(t *testing.T, w *world, c *leasehold.Client, wire *wire) {
			lock := w.acquire(c, "job")
			elapse(time.Second)
			wire.setFault(cut)
			ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
			defer cancel()
			if err := lock.Release(ctx); !errors.Is(err, leasehold.ErrUnknownOutcome) {
				t.Error(err)
			}
			elapse(7 * time.Second)
			wire.setFault(nil)
			w.release(lock)
		}},
		"a release of a lock that has been lost": {18 * time.Second, func(t *testing.T, w *world, c *leasehold.Client, wire *wire) {
			lock := w.acquire(c, "job", leasehold.WithoutRenewal())
			elapse(25 * time.Second)
			if err := lock.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) {
				t.Error(err)
			}
		}},
		"renewals without an answer, until the record is read": {5 * time.Minute, func(_ *testing.T, w *world, c *leasehold.Client, wire *wire) {
			lock := w.acquire(c, "job", leasehold.WithLease(10*time.Minute))
			wire.setFault(func(context.Context, call, func() (*http.Response, error)) (*http.Response, error) {
				return nil, errReset
			})
			elapse(5 * time.Minute)
			wire.setFault(nil)
			w.release(lock)
		}},
		"a key that is handed over": {4 * time.Second, func(_ *testing.T, w *world, c *leasehold.Client, _ *wire) {
			first := w.acquire(c, "job")
			next := make(chan *leasehold.Lock, 1)
			go func() { next <- w.acquire(c, "job") }()
			elapse(time.Second)
			w.release(first)
			second := <-next
			elapse(3 * time.Second)
			w.release(second)
		}},
		"several keys": {3 * time.Second, func(t *testing.T, _ *world, c *leasehold.Client, _ *wire) {
			g, err := c.AcquireAll(t.Context(), leasehold.Keys("x", "y", "z"))
			if err != nil {
				t.Fatal(err)
			}
			elapse(time.Second)
			if err := g.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}},
		"Close": {2 * time.Second, func(t *testing.T, w *world, c *leasehold.Client, _ *wire) {
			w.acquire(c, "x")
			w.acquire(c, "y")
			elapse(time.Second)
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				var log eventLog
				cfg := config()
				cfg.OnEvent = log.onEvent
				c, wire := w.work().client(cfg)
				tc.do(t, w, c, wire)
				synctest.Wait()
				requests, held := log.sums()
				if sent := len(wire.sent()); requests != sent {
					t.Errorf("%d requests were sent, the events tell of %d", sent, requests)
				}
				if held.Truncate(time.Second) != tc.held { // a repeated request comes after a random pause
					t.Errorf("held for %v, the events tell of %v", tc.held, held)
				}
			})
		})
	}
}
