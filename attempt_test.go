package leasehold_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestAGrantIsWaitedForNoLongerThanItCouldBeTrusted(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.Once(lab.Call.Grants, lab.Cut))
		began := time.Now()
		lock := w.Acquire(c, "job", leasehold.WithLease(time.Second))
		if took := time.Since(began); took > 1100*time.Millisecond {
			t.Errorf("took %v", took)
		}
		w.Release(lock)
	})
}

func TestAGrantIsAskedForUntilItIsAnsweredHoweverManyAttemptsHadNoAnswer(t *testing.T) {
	for name, acquire := range map[string]func(ctx context.Context, c *leasehold.Client) error{
		"Acquire": func(ctx context.Context, c *leasehold.Client) error { return lab.ErrorOf(c.Acquire(ctx, "a")) },
		"AcquireAny": func(ctx context.Context, c *leasehold.Client) error {
			return lab.ErrorOf(c.AcquireAny(ctx, leasehold.Keys("a", "b")))
		},
		"AcquireAll": func(ctx context.Context, c *leasehold.Client) error {
			return lab.ErrorOf(c.AcquireAll(ctx, leasehold.Keys("a", "b")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.Config())
				var asked atomic.Int32
				wire.SetFault(func(r *lab.Request) (*http.Response, error) {
					if r.Grants() && asked.Add(1) <= 250 {
						return nil, lab.ErrReset
					}
					return r.Send()
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				if err := acquire(ctx, c); err != nil || asked.Load() != 251 {
					t.Errorf("after %d requests: %v", asked.Load(), err)
				}
				_ = c.Close(t.Context())
			})
		})
	}
}

func TestAnAttemptTooOldToBeNamedIsTakenOverAtOnceWhenItIsAppliedLate(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		var asked atomic.Int32
		var first *lab.Request
		var mended time.Time
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if !r.Grants() || !mended.IsZero() {
				return r.Send()
			}
			switch asked.Add(1) {
			case 1:
				first = r
			case 60: // the first is not named any more
				_, _ = first.Send()
				mended = time.Now()
			}
			return nil, lab.ErrReset
		})
		lock := w.Acquire(c, "job")
		if took := time.Since(mended); took > 5*time.Second {
			t.Errorf("acquired %v later", took)
		}
		w.Release(lock)
	})
}

func TestARefusalAfterALostReplyIsAnUnknownOutcome(t *testing.T) {
	for name, tc := range map[string]struct {
		fits func(lab.Call) bool
		do   func(ctx context.Context, c *leasehold.Client, lock *leasehold.Lock) error
	}{
		"renew": {lab.Call.Renews, func(ctx context.Context, _ *leasehold.Client, lock *leasehold.Lock) error {
			return lock.Renew(ctx, leasehold.WithData([]byte("x")))
		}},
		"break": {lab.Call.Releases, func(ctx context.Context, c *leasehold.Client, lock *leasehold.Lock) error {
			return c.Break(ctx, lock.Record())
		}},
		"resume": {lab.Call.Renews, func(ctx context.Context, c *leasehold.Client, lock *leasehold.Lock) error {
			g, err := lock.Detach()
			if err != nil {
				return err
			}
			_, err = c.Resume(ctx, g)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.Config())
				lock := w.Acquire(c, "job", leasehold.WithoutRenewal())
				lost := false
				wire.SetFault(func(r *lab.Request) (*http.Response, error) {
					if tc.fits(r.Call) && !lost {
						lost = true
						return lab.LoseReply(r)
					}
					return lab.Refusal(400, "AccessDeniedException"), nil
				})
				if err := tc.do(t.Context(), c, lock); !errors.Is(err, leasehold.ErrUnknownOutcome) {
					t.Errorf("landed, then refused: %v", err)
				}
				wire.SetFault(nil)
				_ = lock.Release(t.Context())
			})
		})
	}
}
