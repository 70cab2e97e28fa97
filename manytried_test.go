package leasehold_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestAGrantIsAskedForUntilItIsAnsweredHoweverManyAttemptsHadNoAnswer(t *testing.T) {
	for name, acquire := range map[string]func(ctx context.Context, c *leasehold.Client) error{
		"Acquire": func(ctx context.Context, c *leasehold.Client) error { return second(c.Acquire(ctx, "a")) },
		"AcquireAny": func(ctx context.Context, c *leasehold.Client) error {
			return second(c.AcquireAny(ctx, leasehold.Keys("a", "b")))
		},
		"AcquireAll": func(ctx context.Context, c *leasehold.Client) error {
			return second(c.AcquireAll(ctx, leasehold.Keys("a", "b")))
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
