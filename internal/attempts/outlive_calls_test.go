package attempts_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestCancelledCallReturnsErrorsOfEarlierRequests(t *testing.T) {
	type op = func(context.Context, *leasehold.Client, *leasehold.Lock) error
	closing := func(ctx context.Context, c *leasehold.Client, _ *leasehold.Lock) error { return c.Close(ctx) }
	for name, test := range map[string]struct {
		config leasehold.Config
		end    op
	}{
		"Release":                    {lab.Config(), func(ctx context.Context, _ *leasehold.Client, l *leasehold.Lock) error { return l.Release(ctx) }},
		"Close":                      {lab.Config(), closing},
		"Close under a shared lease": {lab.SharedConfig(), closing},
		"Renew":                      {lab.Config(), func(ctx context.Context, _ *leasehold.Client, l *leasehold.Lock) error { return l.Renew(ctx) }},
		"Break": {lab.Config(), func(ctx context.Context, c *leasehold.Client, l *leasehold.Lock) error {
			return c.Break(ctx, l.Record(), leasehold.BreakOptions{})
		}},
		"Commit": {lab.Config(), func(ctx context.Context, _ *leasehold.Client, l *leasehold.Lock) error { return l.Commit(ctx, nil) }},
		"CommitAndRelease": {lab.Config(), func(ctx context.Context, _ *leasehold.Client, l *leasehold.Lock) error {
			return l.CommitAndRelease(ctx, nil)
		}},
		"Resume": {lab.Config(), func(ctx context.Context, c *leasehold.Client, l *leasehold.Lock) error {
			g, err := l.Detach()
			if err != nil {
				return err
			}
			return lab.ErrorOf(c.Resume(ctx, g))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(test.config)
				var opts []leasehold.AcquireOption
				if !test.config.SharedLease { // turns off background renewals, as one of them would otherwise be sent instead of the request of Renew
					opts = append(opts, leasehold.WithoutRenewal())
				}
				lock := w.Acquire(c, "job", opts...)
				began := time.Now()
				wire.SetFault(func(*lab.Request) (*http.Response, error) {
					if time.Since(began) > 2*time.Second {
						time.Sleep(5 * time.Second) // the reply takes longer than the time that is left in ctx
					}
					return lab.Refusal(400, "ThrottlingException"), nil
				})
				ctx := w.Within(5*time.Second)
				err := test.end(ctx, c, lock)
				if took := time.Since(began); took != 5*time.Second {
					t.Errorf("took %v", took)
				}
				if !errors.Is(err, leasehold.ErrUnknownOutcome) || !strings.Contains(err.Error(), "throttled: raise the table's capacity") {
					t.Errorf("error %v", err)
				}
				wire.SetFault(nil)
				_ = lock.Release(t.Context())
				lab.Elapse(time.Minute)
			})
		})
	}
}

// endedUnseen is an ended context whose first call of Err returns nil.
type endedUnseen struct {
	context.Context
	asked bool
}

func (c *endedUnseen) Err() error {
	if !c.asked {
		c.asked = true
		return nil
	}
	return c.Context.Err()
}

func TestCancelledCallReturnsBeforeFirstAnswer(t *testing.T) {
	for name, end := range map[string]func(context.Context, *leasehold.Client, leasehold.Grant, leasehold.Record) error{
		"Break": func(ctx context.Context, c *leasehold.Client, _ leasehold.Grant, r leasehold.Record) error {
			return c.Break(ctx, r, leasehold.BreakOptions{})
		},
		"Resume": func(ctx context.Context, c *leasehold.Client, g leasehold.Grant, _ leasehold.Record) error {
			return lab.ErrorOf(c.Resume(ctx, g))
		},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.Config())
				lock := w.Acquire(c, "job")
				record, grant := lock.Record(), w.Detach(lock)
				wire.SetFault(lab.Slow(time.Second))
				ended, cancel := context.WithCancel(t.Context())
				cancel()
				began := time.Now()
				err := end(&endedUnseen{Context: ended}, c, grant, record)
				if took := time.Since(began); took != 0 || !errors.Is(err, leasehold.ErrUnknownOutcome) {
					t.Errorf("%v after %v", err, took)
				}
				lab.Elapse(time.Minute)
			})
		})
	}
}
