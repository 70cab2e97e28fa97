package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// isClosedAlone fails the test unless err matches ErrClosed. It also fails if err matches
// ErrReleased or ErrLost.
func isClosedAlone(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, leasehold.ErrClosed) || errors.Is(err, leasehold.ErrReleased) || errors.Is(err, leasehold.ErrLost) {
		t.Errorf("%s: %v", what, err)
	}
}

func TestLockOfClosedClientReportsErrClosed(t *testing.T) {
	for _, cfg := range []leasehold.Config{lab.Config(), lab.SharedConfig()} {
		for name, opts := range map[string][]leasehold.AcquireOption{
			"kept": nil, "deleted": {leasehold.DeleteOnRelease(true)}, "for work done once": {leasehold.Once("v1")},
		} {
			t.Run(fmt.Sprintf("%s, shared lease %t", name, cfg.SharedLease), func(t *testing.T) {
				lab.InBubble(t, func(t *testing.T, w *lab.World) {
					c, _, lock := w.Holding(cfg, opts...)
					lab.OK(t, c.Close(t.Context()))
					isClosedAlone(t, "grant", leasehold.Ended(lock))
					isClosedAlone(t, "lock", lock.Err())
					_, err := leasehold.ShareGrant(t.Context(), lock)
					isClosedAlone(t, "Acquire with Reentrant", err)
				})
			})
		}
	}
}

// meetsClose runs operation and returns its error. When the client sends the first request
// for which matches returns true, meetsClose starts to close the client. It applies fault to
// this request, and to every later request for which matches returns true.
func meetsClose(t *testing.T, c *leasehold.Client, wire *lab.Wire, matches func(lab.Call) bool, fault lab.Fault, operation func() error) error {
	t.Helper()
	closed := make(chan error, 1)
	closeOnce := sync.OnceFunc(func() {
		go func() { closed <- c.Close(context.WithoutCancel(t.Context())) }()
		synctest.Wait()
	})
	wire.SetFault(func(r *lab.Request) (*http.Response, error) {
		if !matches(r.Call) {
			return r.Send()
		}
		closeOnce()
		return fault(r)
	})
	err := operation()
	lab.WantErr(t, "close", <-closed, nil)
	return err
}

func TestReadDuringCloseReturnsErrClosed(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire, lock := w.Holding(lab.Config())
		reads := func(c lab.Call) bool { return c.Op == "TransactGetItems" }
		isClosedAlone(t, "read", meetsClose(t, c, wire, reads, (*lab.Request).Send, func() error {
			_, err := lock.Read(t.Context(), nil)
			return err
		}))
	})
}

func TestCommitDuringCloseReturnsErrClosed(t *testing.T) {
	for _, cfg := range []leasehold.Config{lab.Config(), lab.SharedConfig()} {
		t.Run(fmt.Sprintf("shared lease %t", cfg.SharedLease), func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire, outer := w.Work().Holding(cfg)
				inner := lab.Must(c.Acquire(outer.Context(), "job", leasehold.Reentrant()))(t)
				isClosedAlone(t, "commit", meetsClose(t, c, wire, lab.Call.Commits, lab.Throttled, func() error {
					return inner.CommitAndRelease(t.Context(), lab.Writes(lab.Note("a", "1")))
				}))
				w.WantLog()
			})
		})
	}
}

// A lock is lost in two steps: first its lease ends, and then the contexts of its handles end. On a
// busy machine, another goroutine may use the lock between the two steps. Every method of the lock
// must then already report the loss.
func TestLockAndItsContextsShowLossAsSoonAsLeaseEnds(t *testing.T) {
	for name, look := range map[string]func(lock *leasehold.Lock, bound context.Context) error{
		"Err":           func(lock *leasehold.Lock, _ context.Context) error { return lock.Err() },
		"Context":       func(lock *leasehold.Lock, _ context.Context) error { return lock.Context().Err() },
		"Cause":         func(lock *leasehold.Lock, _ context.Context) error { return context.Cause(lock.Context()) },
		"Bind":          func(_ *leasehold.Lock, bound context.Context) error { return bound.Err() },
		"Cause of Bind": func(_ *leasehold.Lock, bound context.Context) error { return context.Cause(bound) },
		"Done": func(lock *leasehold.Lock, _ context.Context) error {
			select {
			case <-lock.Context().Done():
				return context.Canceled
			default:
				return nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				_, _, lock := w.Holding(lab.Config())
				bound, cancel := lock.Bind(t.Context())
				defer cancel()
				lab.OK(t, look(lock, bound))
				leasehold.EndLeaseAlone(lock, leasehold.ErrLost)
				if look(lock, bound) == nil {
					t.Error("the lock does not report the loss")
				}
				lab.WantErr(t, "cause", lock.Err(), leasehold.ErrLost)
			})
		})
	}
}
