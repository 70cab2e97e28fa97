package hold_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// server simulates a DynamoDB that processes a limited number of releases at a time, while other
// releases wait. It records the order of all releases, and the largest number of releases that
// were in flight at one time.
type server struct {
	places chan struct{}
	takes  time.Duration

	inFlight // counts the releases that are processed or waiting
	released []string
}

func (s *server) serve(r *lab.Request) (*http.Response, error) {
	if !r.Releases() {
		return r.Send()
	}
	defer s.enter()()
	s.mu.Lock()
	s.released = append(s.released, r.Keys()...)
	s.mu.Unlock()
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	time.Sleep(s.takes)
	return r.Send()
}

func newServer(places int, takes time.Duration) *server {
	return &server{places: make(chan struct{}, places), takes: takes}
}

func TestCloseSendsAtMost128ConcurrentReleases(t *testing.T) {
	thousands := lab.Cases(10_000, 600)
	type row struct {
		locks  int
		places int
		takes  time.Duration
		most   int // limit for the releases in flight at a time
	}
	lab.Each(t, map[string]row{
		"128 at a time": {thousands, 128, 5 * time.Millisecond, 128},
		"one at a time": {600, 1, 10 * time.Millisecond, 128}, // half of the requests would time out if all were sent at once
	}, func(t *testing.T, w *lab.World, tc row) {
		server := newServer(tc.places, tc.takes)
		c, wire := w.Client(lab.Config())
		w.AcquireMany(c, "job", tc.locks)
		wire.SetFault(server.serve)
		began := time.Now()
		lab.WantErr(t, "close", c.Close(t.Context()), nil)
		least := time.Duration(tc.locks/tc.places) * tc.takes
		lab.WantTook(t, "closed after", began, 0, least+least/4+100*time.Millisecond)
		lab.WantRange(t, "requests at a time", server.most, 0, tc.most)
		for i := range tc.locks {
			w.WantReleased(fmt.Sprintf("job/%d", i))
		}
	})
}

func TestCloseReleasesLocksInOrderOfExpiry(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config(), lab.Renewals(16))
		for i := range 64 { // each lock is trusted for one second less than the lock before
			w.Acquire(c, fmt.Sprint(i), leasehold.WithLease(100*time.Second-time.Duration(i)*time.Second))
		}
		s := newServer(16, 5*time.Millisecond)
		wire.SetFault(s.serve)
		lab.WantErr(t, "close", c.Close(t.Context()), nil)
		for i, key := range s.released {
			if n, _ := strconv.Atoi(key); (63-n)/16 != i/16 {
				t.Fatalf("released in the order %v", s.released)
			}
		}
	})
}

func TestCloseReleasesOtherLocksDespiteHangingReleases(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config(), lab.Renewals(16))
		w.AcquireMany(c, "hung", 15, leasehold.WithLease(10*time.Second)) // these locks have the least trust, so Close releases them first
		w.AcquireMany(c, "job", 100)
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if keys := r.Keys(); len(keys) == 1 && strings.HasPrefix(keys[0], "hung/") {
				return lab.Cut(r)
			}
			return lab.Slow(5 * time.Millisecond)(r)
		})
		closed := lab.Go(func() error { return c.Close(t.Context()) })
		lab.Elapse(4 * time.Second)
		for i := range 100 {
			w.WantReleased(fmt.Sprintf("job/%d", i))
		}
		lab.WantFailed(t, "close with releases that hang", <-closed)
	})
}

func TestErrorOfCloseIsOneShortLine(t *testing.T) {
	for _, n := range []int{1, 2, 100} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.Config())
				w.AcquireMany(c, "job", n)
				wire.SetFault(lab.Cut)
				err := c.Close(w.Ended())
				lab.WantErr(t, "close", err, leasehold.ErrUnknownOutcome, context.Canceled)
				text := fmt.Sprint(err)
				if strings.Contains(text, "\n") || len(text) > 400 || !strings.Contains(text, "job/") || !strings.Contains(text, "locks") {
					t.Errorf("error text %q", text)
				}
				if n > 1 && !strings.Contains(text, fmt.Sprint(n)) {
					t.Errorf("the error does not contain the number of locks: %q", text)
				}
				lab.WantAs[*leasehold.OpError](t, "close", err)
				lab.Elapse(3 * time.Second) // let the unanswered requests end
			})
		})
	}
}

func TestErrorOfCloseMentionsThrottlingRatherThanUnknownOutcome(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		for _, key := range []string{"unanswered", "b", "c"} {
			w.Acquire(c, key)
		}
		var sent atomic.Bool
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			switch {
			case !slices.Contains(r.Keys(), "unanswered"):
				return lab.Refusal(400, "ThrottlingException"), nil
			case !sent.Swap(true):
				return nil, lab.ErrReset
			}
			return lab.Refusal(400, "AccessDeniedException"), nil // ends the release of this key, with an unknown outcome; the releases of b and c are throttled, and repeated
		})
		err := c.Close(w.Within(6 * time.Second))
		if !errors.Is(err, leasehold.ErrUnknownOutcome) || !strings.Contains(err.Error(), "3 of 3 locks") || !strings.Contains(err.Error(), "throttled: raise the table's capacity") {
			t.Errorf("error %v", err)
		}
	})
}

func TestCloseWithCancelledContextReturnsAfterTwoSeconds(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config(), lab.Renewals(16))
		w.AcquireMany(c, "job", 200)
		s := newServer(16, 500*time.Millisecond)
		wire.SetFault(s.serve)
		began := time.Now()
		err := c.Close(w.Ended())
		lab.Want(t, "closed after", time.Since(began), 2*time.Second)
		lab.WantErr(t, "close", err, context.Canceled)
		lab.Elapse(10 * time.Second)
		wire.Sent()
		lab.Elapse(time.Minute)
		lab.Want(t, "requests after Close", len(wire.Sent()), 0)
		lab.Want(t, "locks held", len(c.Held()), 0)
	})
}

// Two functions passed to Do release their locks themselves when Close cancels their contexts.
// Close takes the only slot for a request, and then need not release the first lock. It must give
// the slot back, because the second lock needs it.
func TestCloseReturnsSoonIfCallbacksOfMethodDoReleaseTheirLocks(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config(), lab.Renewals(1))
		for _, key := range []string{"a", "b"} {
			go func() {
				_ = c.Do(t.Context(), key, func(ctx context.Context, lock *leasehold.Lock) error {
					<-ctx.Done()
					return lock.Release(t.Context())
				})
			}()
		}
		synctest.Wait()
		began := time.Now()
		lab.WantErr(t, "close", c.Close(t.Context()), nil)
		lab.WantTook(t, "closed after", began, 0, time.Second)
	})
}
