package byname_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/contrib/byname"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// issue is the name of the lock in these tests.
const issue = "issue_example.com"

// namesOf simulates a new process. It returns the Locker, the client and the network of
// this process.
func namesOf(w *lab.World, cfg leasehold.Config) (*byname.Locker, *leasehold.Client, *lab.Wire) {
	w.T.Helper()
	c, wire := w.Client(cfg)
	return lab.Must(byname.New(c, "certificates/"))(w.T), c, wire
}

// locking calls Lock in a new goroutine. It returns a channel that receives the error from Lock.
func locking(ctx context.Context, names *byname.Locker) <-chan error {
	return lab.Go(func() error { return names.Lock(ctx, issue) })
}

func pending(t *testing.T, done <-chan error, why string) {
	t.Helper()
	select {
	case err := <-done:
		t.Fatalf("Lock returned early with error %v: %s", err, why)
	default:
	}
}

// wantTry calls TryLock with the given name. It fails the test unless the call returns no error and
// the result "locked".
func wantTry(t *testing.T, what string, names *byname.Locker, name string, locked bool) {
	t.Helper()
	ok, err := names.TryLock(t.Context(), name)
	lab.WantErr(t, what, err, nil)
	lab.Want(t, what, ok, locked)
}

func TestLockExcludesOtherProcessesInEveryLayout(t *testing.T) {
	layouts := []layout.Layout{layout.Native{}, layout.AWSLabs{}, layout.Dynamolock{}, layout.PythonDynamoDBLock{}, layout.DynamoDLM{}, layout.DyndbMutex{}}
	for _, l := range layouts {
		t.Run(l.Name(), func(t *testing.T) {
			lab.InLayout(t, l, func(t *testing.T, w *lab.World, cfg leasehold.Config) {
				a, _, _ := namesOf(w, cfg)
				b, _, _ := namesOf(w, cfg)
				lab.OK(t, a.Lock(t.Context(), issue))
				wantTry(t, "TryLock by another process while the name is locked", b, issue, false)
				wantTry(t, "TryLock of another name", b, "issue_example.org", true)
				waiting := locking(t.Context(), b)
				lab.Elapse(time.Minute)
				pending(t, waiting, "another process holds the name")
				lab.OK(t, a.Unlock(t.Context(), issue))
				lab.OK(t, <-waiting)
				lab.OK(t, b.Unlock(t.Context(), issue))
				lab.OK(t, b.Unlock(t.Context(), "issue_example.org"))
			})
		})
	}
}

func TestGoroutinesAcquireLockInOrderOfTheirCalls(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		names, _, wire := namesOf(w, lab.Config())
		lab.OK(t, names.Lock(t.Context(), issue))
		first := locking(t.Context(), names)
		second := locking(t.Context(), names)
		wantTry(t, "TryLock while this process holds the name", names, issue, false)
		wire.Sent()
		lab.OK(t, names.Unlock(t.Context(), issue))
		lab.OK(t, <-first)
		if sent := wire.Sent(); len(sent) != 1 || !sent[0].HandsOver() {
			t.Errorf("the next goroutine was granted the lock by the requests %v", lab.Ops(sent))
		}
		pending(t, second, "another goroutine holds the lock")
		lab.OK(t, names.Unlock(t.Context(), issue))
		lab.OK(t, <-second)
		lab.OK(t, names.Unlock(t.Context(), issue))
	})
}

func TestUnlockOfLostLockReturnsErrLost(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		names, _, _ := namesOf(w, lab.Config())
		lab.OK(t, names.Lock(t.Context(), issue))
		lock, ok := names.Held(issue)
		lab.Want(t, "held after Lock", ok, true)
		w.Steal("certificates/" + issue)
		lab.Elapse(10 * time.Second)
		lab.WantErr(t, "the lock's context", context.Cause(lock.Context()), leasehold.ErrLost)
		lab.WantErr(t, "unlock", names.Unlock(t.Context(), issue), leasehold.ErrLost)
		_, ok = names.Held(issue)
		lab.Want(t, "held after Unlock", ok, false)
	})
}

func TestLockerBlocksLocalCallersUntilHolderUnlocksLostLock(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, c, wire := namesOf(w, lab.Config())
		b, _, _ := namesOf(w, lab.Config())
		lab.OK(t, a.Lock(t.Context(), issue))
		came := locking(t.Context(), a) // this call waits in the queue of its own process until the lock above is unlocked
		r := lab.Must(c.Get(t.Context(), "certificates/"+issue))(t)
		lab.OK(t, c.Break(t.Context(), r, leasehold.BreakOptions{}))
		wire.SetFault(lab.Once(lab.Call.Releases, lab.Refused("AccessDeniedException"))) // came's release of the lock that it cannot use yet
		lab.Elapse(10 * time.Second)
		comes := locking(t.Context(), a) // this call begins after the lock was lost
		lab.Elapse(10 * time.Second)
		pending(t, came, "the lost lock has not been unlocked")
		pending(t, comes, "the lost lock has not been unlocked")
		wire.Sent()
		wantTry(t, "TryLock in the same process", a, issue, false)
		lab.Want(t, "requests of TryLock in the same process", len(wire.Sent()), 0)
		wantTry(t, "TryLock in another process", b, issue, true)
		lab.OK(t, b.Unlock(t.Context(), issue))
		lab.WantErr(t, "unlock of the broken lock", a.Unlock(t.Context(), issue), leasehold.ErrLost)
		for range 2 { // the two calls are granted the key in either order
			select {
			case err := <-came:
				lab.OK(t, err)
			case err := <-comes:
				lab.OK(t, err)
			}
			lab.OK(t, a.Unlock(t.Context(), issue))
		}
	})
}

func TestLockReturnsErrorIfContextEnds(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		names, _, _ := namesOf(w, lab.Config())
		lab.OK(t, names.Lock(t.Context(), issue))
		w.Steal("certificates/" + issue)
		lab.Elapse(10 * time.Second)
		stop := errors.New("stop")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, stop)
		defer cancel()
		err := names.Lock(ctx, issue)
		lab.WantErr(t, "lock", err, stop, context.DeadlineExceeded)
		lab.WantText(t, "lock", err, "certificates/"+issue)
		_ = names.Unlock(t.Context(), issue)
	})
}

func TestLockAndTryLockReturnErrClosedAfterClose(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		names, c, _ := namesOf(w, lab.Config())
		lab.OK(t, names.Lock(t.Context(), issue))
		lab.OK(t, c.Close(t.Context()))
		lab.WantErr(t, "Lock", names.Lock(w.Within(time.Minute), issue), leasehold.ErrClosed)
		lab.WantErr(t, "TryLock", lab.ErrorOf(names.TryLock(t.Context(), issue)), leasehold.ErrClosed)
	})
}

func TestUnlockReleasesLockDespiteEndedContext(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		names, _, _ := namesOf(w, lab.Config())
		ctx, cancel := context.WithCancel(t.Context())
		lab.OK(t, names.Lock(ctx, issue))
		cancel()
		lab.OK(t, names.Unlock(ctx, issue))
		w.WantReleased("certificates/" + issue)
	})
}

func TestRenewLockLeaseIgnoresRequestedDuration(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		names, _, _ := namesOf(w, lab.Config())
		lab.OK(t, names.Lock(t.Context(), issue))
		lab.Elapse(time.Second)
		lab.OK(t, names.RenewLockLease(t.Context(), issue, 6*time.Hour))
		lock, _ := names.Held(issue)
		lab.Want(t, "trust", time.Until(lock.TrustedUntil()), 18*time.Second)
		w.Steal("certificates/" + issue)
		lab.WantErr(t, "renewal of a stolen lock", names.RenewLockLease(t.Context(), issue, time.Hour), leasehold.ErrLost)
		_ = names.Unlock(t.Context(), issue)
	})
}

func TestTryLockTakesOverFromDeadHolder(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _, wire := namesOf(w, lab.Config())
		b, _, _ := namesOf(w, lab.Config())
		lab.OK(t, a.Lock(t.Context(), issue))
		wire.SetFault(lab.Cut)
		lab.Elapse(time.Hour)
		wantTry(t, "TryLock", b, issue, true)
		lab.OK(t, b.Unlock(t.Context(), issue))
		_ = a.Unlock(t.Context(), issue)
	})
}

func TestUnlockAndRenewFailIfNameIsNotLocked(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		names, _, wire := namesOf(w, lab.Config())
		lab.WantText(t, "unlock", names.Unlock(t.Context(), issue), "certificates/"+issue)
		lab.WantText(t, "renew", names.RenewLockLease(t.Context(), issue, time.Hour), "certificates/"+issue)
		lab.Want(t, "requests", len(wire.Sent()), 0)
	})
}

func TestTryLockReturnsErrorIfContextEnds(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _, wire := namesOf(w, lab.Config())
		b, _, _ := namesOf(w, lab.Config())
		lab.OK(t, a.Lock(t.Context(), issue))
		wire.SetFault(lab.Cut)
		lab.Elapse(time.Hour)
		if ok, err := b.TryLock(w.Within(time.Second), issue); ok || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("TryLock of a dead holder's name: %v, %v", ok, err)
		}
		_ = a.Unlock(t.Context(), issue)
	})
}

func TestTryLockReturnsErrorIfRequestsFail(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		names, c, wire := namesOf(w, lab.Config())
		wire.SetFault(lab.Cut)
		if ok, err := names.TryLock(t.Context(), issue); ok || err == nil {
			t.Errorf("TryLock without a network: %v, %v", ok, err)
		}
		_ = c.Close(t.Context())
	})
}

func TestNewRejectsNilClientAndInvalidPrefix(t *testing.T) {
	lab.WantFailed(t, "New with a nil client", lab.ErrorOf(byname.New(nil, "")))
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		for _, prefix := range []string{"leasehold/session/", strings.Repeat("k", 2048)} {
			lab.WantFailed(t, fmt.Sprintf("New with a prefix of %d bytes", len(prefix)), lab.ErrorOf(byname.New(c, prefix)))
		}
		lab.Want(t, "requests", len(wire.Sent()), 0)
	})
}

func TestSessionLockWaitsUntilOtherProcessUnlocks(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _, _ := namesOf(w, lab.Config())
		b, _, _ := namesOf(w, lab.Config())
		mine, theirs := a.ForDatabase("orders"), b.ForDatabase("orders")
		lab.OK(t, mine.Lock(t.Context(), nil))
		locked := lab.Go(func() error { return theirs.SessionLock(t.Context(), nil) })
		lab.Elapse(time.Minute)
		pending(t, locked, "another process changes the database")
		lab.OK(t, mine.Unlock(t.Context(), nil))
		lab.OK(t, <-locked)
		lab.OK(t, theirs.SessionUnlock(t.Context(), nil))
	})
}
