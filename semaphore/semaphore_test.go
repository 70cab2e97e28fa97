package semaphore_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/semaphore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newSemaphore(w *lab.World, c *leasehold.Client, n int) *semaphore.Semaphore {
	w.T.Helper()
	return lab.Must(semaphore.New(c, "gpu", n))(w.T)
}

func takePermit(w *lab.World, s *semaphore.Semaphore, opts ...leasehold.AcquireOption) *leasehold.Lock {
	w.T.Helper()
	return lab.Must(s.Acquire(w.T.Context(), opts...))(w.T)
}

// closed closes the given clients, and fails the test if a call of Close returns an error.
func closed(t *testing.T, clients ...*leasehold.Client) {
	t.Helper()
	for _, c := range clients {
		lab.OK(t, c.Close(t.Context()))
	}
}

func TestSemaphoresOfSameKeyWithDifferentSizesSharePermits(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		b, _ := w.Client(lab.Config())
		one, three := newSemaphore(w, a, 1), newSemaphore(w, b, 3)
		first := takePermit(w, one)
		held := map[string]bool{first.Key().Partition: true}
		for range 2 {
			held[takePermit(w, three, leasehold.NoWait()).Key().Partition] = true
		}
		if len(held) != 3 || !held["gpu/0"] || !held["gpu/1"] || !held["gpu/2"] {
			t.Errorf("held %v", held)
		}
		lab.WantErr(t, "fourth permit", lab.ErrorOf(three.Acquire(t.Context(), leasehold.NoWait())), leasehold.ErrHeld)
		w.Release(first)
		lab.Want(t, "key of the permit", takePermit(w, three, leasehold.NoWait()).Key().Partition, "gpu/0")
		lab.WantErr(t, "semaphore of size one", lab.ErrorOf(one.Acquire(t.Context(), leasehold.NoWait())), leasehold.ErrHeld)
		closed(t, a, b)
	})
}

func TestSemaphoreIsNotMonopolizedByBusyProcess(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		other, _ := w.Client(lab.Config())
		ours, theirs := newSemaphore(w, c, 2), newSemaphore(w, other, 2)
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				for ctx.Err() == nil {
					if permit, err := ours.Acquire(ctx); err == nil {
						time.Sleep(20 * time.Millisecond)
						w.Release(permit)
					}
				}
			})
		}
		lab.Elapse(time.Second)
		for range 10 {
			bound, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			permit, err := theirs.Acquire(bound)
			cancel()
			if err != nil {
				t.Errorf("the other process: %v", err)
				break
			}
			w.Release(permit)
		}
		stop()
		wg.Wait()
		_ = c.Close(t.Context()) // Close waits until it has released permits that were granted after Acquire had returned
		_ = other.Close(t.Context())
	})
}

func TestAcquireAndReleaseOfPermitTakeOneWriteEach(t *testing.T) {
	for _, l := range []layout.Layout{layout.Native{}, layout.AWSLabs{}} {
		t.Run(l.Name(), func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.ConfigOf("locks", l))
				s := newSemaphore(w, c, 3)
				w.Release(takePermit(w, s))
				lab.Want(t, "requests", strings.Join(lab.Ops(wire.Sent()), " "), "UpdateItem UpdateItem")
				closed(t, c)
			})
		})
	}
}

func TestHolderOfPermitMayAcquireSecondPermit(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		s := newSemaphore(w, c, 2)
		outer := takePermit(w, s)
		if shared, err := s.Acquire(outer.Context(), leasehold.Reentrant()); err != nil || shared.Token() != outer.Token() {
			t.Errorf("shared: %v", err)
		} else {
			w.Release(shared)
		}
		second, err := s.Acquire(outer.Context())
		if err != nil || second.Key() == outer.Key() {
			t.Fatalf("second permit: %v", err)
		}
		lab.WantErr(t, "context of both permits", lab.ErrorOf(s.Acquire(second.Context())), leasehold.ErrDeadlock)
		closed(t, c)
	})
}

func TestDoHoldsPermitWhileItsFunctionRuns(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		s := newSemaphore(w, c, 1)
		failed := errors.New("no paper")
		err := s.Do(t.Context(), func(ctx context.Context, permit *leasehold.Lock) error {
			err := s.Do(t.Context(), func(context.Context, *leasehold.Lock) error {
				t.Error("called without a permit")
				return nil
			}, leasehold.NoWait())
			lab.WantErr(t, "second permit of size one", err, leasehold.ErrNotRun, leasehold.ErrHeld)
			lab.WantErr(t, "context", ctx.Err(), nil)
			lab.WantErr(t, "commit", permit.Commit(ctx, nil), nil)
			return failed
		})
		if !errors.Is(err, failed) || errors.Is(err, leasehold.ErrNotRun) {
			t.Errorf("error %v", err)
		}
		lab.WantErr(t, "without a function", s.Do(t.Context(), nil), leasehold.ErrNotRun)
		w.Release(takePermit(w, s, leasehold.NoWait()))
	})
}

func TestSemaphoreNewRejectsInvalidArguments(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		for name, of := range map[string]struct {
			client *leasehold.Client
			key    string
			n      int
		}{
			"no client": {nil, "gpu", 1}, "no key": {c, "", 1}, "no permit": {c, "gpu", 0}, "too many permits": {c, "gpu", semaphore.MostPermits + 1},
		} {
			lab.WantFailed(t, name, lab.ErrorOf(semaphore.New(of.client, of.key, of.n)))
		}
		closed(t, c)
	})
}
