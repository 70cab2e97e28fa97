package rwlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/rwlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const readers = 3

func newLock(t *testing.T, w *lab.World) *rwlock.RWLock {
	t.Helper()
	c, _ := w.Client(lab.Config())
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return lab.Must(rwlock.New(c, "set", readers))(t)
}

func read(t *testing.T, l *rwlock.RWLock) *leasehold.Lock {
	t.Helper()
	return lab.Must(l.AcquireRead(t.Context()))(t)
}

func write(t *testing.T, l *rwlock.RWLock) *leasehold.Group {
	t.Helper()
	return lab.Must(l.AcquireWrite(t.Context()))(t)
}

func TestRWLockAdmitsReadersUpToLimit(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		var held []*leasehold.Lock
		for range readers {
			held = append(held, read(t, newLock(t, w)))
		}
		lab.WantErr(t, "one reader too many", lab.ErrorOf(newLock(t, w).AcquireRead(t.Context(), leasehold.NoWait())), leasehold.ErrHeld)
		lab.OK(t, held[1].Release(t.Context()))
		lab.WantErr(t, "after a release", lab.ErrorOf(newLock(t, w).AcquireRead(t.Context(), leasehold.NoWait())), nil)
	})
}

func TestWriterExcludesReadersAndOtherWriters(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		group := write(t, newLock(t, w))
		other := newLock(t, w)
		_, toRead := other.AcquireRead(t.Context(), leasehold.NoWait())
		_, toWrite := other.AcquireWrite(t.Context(), leasehold.NoWait())
		lab.WantErr(t, "reader beside a writer", toRead, leasehold.ErrHeld)
		lab.WantErr(t, "writer beside a writer", toWrite, leasehold.ErrHeld)
		lab.OK(t, group.Release(t.Context()))
		read(t, other)
		lab.WantErr(t, "writer beside a reader", lab.ErrorOf(newLock(t, w).AcquireWrite(t.Context(), leasehold.NoWait())), leasehold.ErrHeld)
	})
}

// Two readers hold the lock in overlapping periods. Until the writer acquires the first key, at
// least one reader holds the lock at any moment.
func TestRWLockWriterIsNotStarvedByReaders(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		ctx, stop := context.WithCancel(t.Context())
		var done sync.WaitGroup
		for i := range 2 {
			l := newLock(t, w)
			done.Go(func() {
				time.Sleep(time.Duration(i) * 650 * time.Millisecond)
				for ctx.Err() == nil {
					_ = l.DoRead(ctx, func(context.Context, *leasehold.Lock) error {
						time.Sleep(time.Second)
						return nil
					})
					time.Sleep(300 * time.Millisecond)
				}
			})
		}
		lab.Elapse(3 * time.Second)
		began := time.Now()
		group := write(t, newLock(t, w))
		lab.WantTook(t, "granted after", began, 0, 20*time.Second)
		lab.OK(t, group.Release(t.Context()))
		stop()
		done.Wait()
	})
}

func TestAcquireWriteUnderReadLockReturnsErrDeadlock(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		l := newLock(t, w)
		err := l.DoRead(t.Context(), func(ctx context.Context, _ *leasehold.Lock) error {
			_, err := l.AcquireWrite(ctx)
			return err
		})
		lab.WantErr(t, "acquire", err, leasehold.ErrDeadlock)
	})
}

func TestReaderMayReadAgainWhileWriterWaits(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		l, other := newLock(t, w), newLock(t, w)
		first := read(t, l)
		written := lab.Go(func() error {
			return other.DoWrite(t.Context(), func(context.Context, *leasehold.Group) error { return nil })
		})
		lab.Elapse(time.Minute)
		again, err := l.AcquireRead(first.Context(), leasehold.Reentrant())
		lab.WantErr(t, "read again", err, nil)
		lab.OK(t, errors.Join(again.Release(t.Context()), first.Release(t.Context()), <-written))
	})
}

func TestDoReadHoldsReadLockWhileItsFunctionRuns(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, b := newLock(t, w), newLock(t, w)
		lab.OK(t, a.DoRead(t.Context(), func(context.Context, *leasehold.Lock) error {
			lab.WantErr(t, "writer beside a reader", lab.ErrorOf(b.AcquireWrite(t.Context(), leasehold.NoWait())), leasehold.ErrHeld)
			return nil
		}))
		lab.OK(t, write(t, b).Release(t.Context()))
	})
}

func TestWriteLockIsHeldWhileFunctionGivenToDoWriteRuns(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, b := newLock(t, w), newLock(t, w)
		failed := errors.New("no paper")
		err := a.DoWrite(t.Context(), func(ctx context.Context, group *leasehold.Group) error {
			err := b.DoRead(t.Context(), func(context.Context, *leasehold.Lock) error { return nil }, leasehold.NoWait())
			lab.WantErr(t, "reader beside a writer", err, leasehold.ErrNotRun, leasehold.ErrHeld)
			err = b.DoWrite(t.Context(), func(context.Context, *leasehold.Group) error { return nil }, leasehold.NoWait())
			lab.WantErr(t, "writer beside a writer", err, leasehold.ErrNotRun, leasehold.ErrHeld)
			lab.WantErr(t, "commit", group.Commit(ctx, nil), nil)
			return failed
		})
		if !errors.Is(err, failed) || errors.Is(err, leasehold.ErrNotRun) {
			t.Errorf("error %v", err)
		}
		lab.WantErr(t, "DoRead without a function", a.DoRead(t.Context(), nil), leasehold.ErrNotRun)
		lab.WantErr(t, "DoWrite without a function", a.DoWrite(t.Context(), nil), leasehold.ErrNotRun)
	})
}

func TestRWLockNewRejectsInvalidArguments(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		for name, of := range map[string]struct {
			client *leasehold.Client
			key    string
			n      int
		}{
			"no client": {nil, "set", 1}, "no key": {c, "", 1}, "no reader": {c, "set", 0}, "too many readers": {c, "set", rwlock.MostReaders + 1},
		} {
			lab.WantFailed(t, name, lab.ErrorOf(rwlock.New(of.client, of.key, of.n)))
		}
		_ = c.Close(t.Context())
	})
}
