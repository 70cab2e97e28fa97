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
	type row struct {
		config leasehold.Config
		end    op
	}
	lab.Each(t, map[string]row{
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
	}, func(t *testing.T, w *lab.World, r row) {
		var opts []leasehold.AcquireOption
		// Without a shared lease, a background renewal could be sent in place of the request of
		// Renew. So it is turned off.
		if !r.config.SharedLease {
			opts = append(opts, leasehold.WithoutRenewal())
		}
		c, wire, lock := w.Holding(r.config, opts...)
		began := time.Now()
		wire.SetFault(func(*lab.Request) (*http.Response, error) {
			if time.Since(began) > 2*time.Second {
				time.Sleep(5 * time.Second) // the reply comes only after the deadline of the call's context
			}
			return lab.Refusal(400, "ThrottlingException"), nil
		})
		err := r.end(w.Within(5*time.Second), c, lock)
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
}

// endedUnseen is a context that has ended, but whose first call of Err returns
// nil. So the code under test notices the end only at its second call.
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
	type call = func(context.Context, *leasehold.Client, leasehold.Grant, leasehold.Record) error
	lab.Each(t, map[string]call{
		"Break": func(ctx context.Context, c *leasehold.Client, _ leasehold.Grant, r leasehold.Record) error {
			return c.Break(ctx, r, leasehold.BreakOptions{})
		},
		"Resume": func(ctx context.Context, c *leasehold.Client, g leasehold.Grant, _ leasehold.Record) error {
			return lab.ErrorOf(c.Resume(ctx, g))
		},
	}, func(t *testing.T, w *lab.World, end call) {
		c, wire, lock := w.Holding(lab.Config())
		record, grant := lock.Record(), w.Detach(lock)
		wire.SetFault(lab.Slow(time.Second))
		began := time.Now()
		err := end(&endedUnseen{Context: w.Ended()}, c, grant, record)
		if took := time.Since(began); took != 0 || !errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("%v after %v", err, took)
		}
		lab.Elapse(time.Minute)
	})
}
