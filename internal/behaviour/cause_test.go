package behaviour_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/rwlock"
)

// endedCalls are calls that return because their context has ended. The key "held" is held
// by another client. If silent is true, no request gets a reply.
var endedCalls = map[string]struct {
	silent bool
	call   func(ctx context.Context, c *leasehold.Client, lock *leasehold.Lock) error
}{
	"Acquire": {false, func(ctx context.Context, c *leasehold.Client, _ *leasehold.Lock) error {
		return lab.ErrorOf(c.Acquire(ctx, "held"))
	}},
	"Acquire behind a goroutine": {false, func(ctx context.Context, c *leasehold.Client, lock *leasehold.Lock) error {
		return lab.ErrorOf(c.Acquire(ctx, "job"))
	}},
	"Acquire without an answer": {true, func(ctx context.Context, c *leasehold.Client, _ *leasehold.Lock) error {
		return lab.ErrorOf(c.Acquire(ctx, "free"))
	}},
	"AcquireAll": {false, func(ctx context.Context, c *leasehold.Client, _ *leasehold.Lock) error {
		return lab.ErrorOf(c.AcquireAll(ctx, leasehold.Keys("free", "held")))
	}},
	"AcquireAny": {false, func(ctx context.Context, c *leasehold.Client, _ *leasehold.Lock) error {
		return lab.ErrorOf(c.AcquireAny(ctx, leasehold.Keys("held", "job")))
	}},
	"Client.Do": {false, func(ctx context.Context, c *leasehold.Client, _ *leasehold.Lock) error {
		return c.Do(ctx, "held", func(context.Context, *leasehold.Lock) error { return nil })
	}},
	"reader": {false, func(ctx context.Context, c *leasehold.Client, _ *leasehold.Lock) error {
		rw, err := rwlock.New(c, "rows", 2)
		if err != nil {
			return err
		}
		if _, err := rw.AcquireWrite(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		return lab.ErrorOf(rw.AcquireRead(ctx))
	}},
	"Campaign": {false, func(ctx context.Context, c *leasehold.Client, _ *leasehold.Lock) error {
		return lab.ErrorOf(electionOf(c, "held").Campaign(ctx, ""))
	}},
	"Lead": {false, func(ctx context.Context, c *leasehold.Client, _ *leasehold.Lock) error {
		return electionOf(c, "held").Lead(ctx, "", func(context.Context, *leasehold.Lock) error { return nil })
	}},
	"Renew": {true, func(ctx context.Context, _ *leasehold.Client, lock *leasehold.Lock) error { return lock.Renew(ctx) }},
	"Commit": {true, func(ctx context.Context, _ *leasehold.Client, lock *leasehold.Lock) error {
		return lock.Commit(ctx, nil)
	}},
	"CommitAndRelease": {true, func(ctx context.Context, _ *leasehold.Client, lock *leasehold.Lock) error {
		return lock.CommitAndRelease(ctx, nil)
	}},
	"Read": {true, func(ctx context.Context, _ *leasehold.Client, lock *leasehold.Lock) error {
		return lab.ErrorOf(lock.Read(ctx, nil))
	}},
	"Release": {true, func(ctx context.Context, _ *leasehold.Client, lock *leasehold.Lock) error { return lock.Release(ctx) }},
	"Close":   {true, func(ctx context.Context, c *leasehold.Client, _ *leasehold.Lock) error { return c.Close(ctx) }},
	"Get": {true, func(ctx context.Context, c *leasehold.Client, _ *leasehold.Lock) error {
		return lab.ErrorOf(c.Get(ctx, "job"))
	}},
	"Break": {true, func(ctx context.Context, c *leasehold.Client, lock *leasehold.Lock) error {
		return c.Break(ctx, lock.Record(), leasehold.BreakOptions{})
	}},
	"Resume": {true, func(ctx context.Context, c *leasehold.Client, lock *leasehold.Lock) error {
		g, err := lock.Detach()
		if err != nil {
			return err
		}
		return lab.ErrorOf(c.Resume(ctx, g))
	}},
}

func TestErrorOfCancelledCallMatchesContextErrorAndCause(t *testing.T) {
	why := errors.New("the shift is over")
	for kind, end := range map[error]func(context.Context, time.Duration) (context.Context, context.CancelFunc){
		context.DeadlineExceeded: func(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(ctx, d, why)
		},
		context.Canceled: func(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			timer := time.AfterFunc(d, func() { cancel(why) })
			return ctx, func() { timer.Stop() }
		},
	} {
		for name, tc := range endedCalls {
			ends := map[string]time.Duration{"meanwhile": 6 * time.Second}
			if !tc.silent {
				ends["before"] = 0
			}
			for when, after := range ends {
				t.Run(name+", "+kind.Error()+", "+when, func(t *testing.T) {
					oneClient(t, func(t *testing.T, w *lab.World, other *leasehold.Client, _ *lab.Wire) {
						w.Acquire(other, "held")
						c, wire, lock := w.Holding(lab.Config())
						if tc.silent {
							wire.SetFault(lab.Drop)
						}
						ctx, cancel := end(t.Context(), after)
						defer cancel()
						synctest.Wait() // let a context with a timeout of zero end first
						err := tc.call(ctx, c, lock)
						lab.WantErr(t, "the call", err, why, kind)
						for _, other := range []error{context.DeadlineExceeded, context.Canceled} {
							if !errors.Is(other, kind) && errors.Is(err, other) {
								t.Errorf("matches %v: %v", other, err)
							}
						}
						wire.SetFault(nil)
						lab.Elapse(time.Minute)
					})
				})
			}
		}
	}
}
