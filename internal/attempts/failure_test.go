package attempts_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// provider is a credential provider. It fails as long as the field "out" contains an error.
type provider struct {
	mu  sync.Mutex
	out error
}

func (p *provider) Retrieve(context.Context) (aws.Credentials, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, p.out
}

var errVault = errors.New("the vault is sealed")

// failFor makes the provider fail for the duration d. If d is zero, the provider fails until
// the test calls set(nil).
func (p *provider) failFor(d time.Duration) {
	p.set(errVault)
	if d > 0 {
		time.AfterFunc(d, func() { p.set(nil) })
	}
}

func (p *provider) set(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out = err
}

// clientOf returns a client that signs its requests with credentials from p.
func clientOf(w *lab.World, p *provider, cfg leasehold.Config) *leasehold.Client {
	w.T.Helper()
	return w.ClientOf(w.Connect(nil, func(o *dynamodb.Options) { o.Credentials = p }), cfg)
}

func TestCallsSucceedDespiteBriefLackOfCredentials(t *testing.T) {
	type call = func(ctx context.Context, c *leasehold.Client, lock *leasehold.Lock) error
	lab.Each(t, map[string]call{
		"acquire": func(ctx context.Context, c *leasehold.Client, _ *leasehold.Lock) error {
			return lab.ErrorOf(c.Acquire(ctx, "b"))
		},
		"try": func(ctx context.Context, c *leasehold.Client, _ *leasehold.Lock) error {
			return lab.ErrorOf(c.TryAcquire(ctx, "b"))
		},
		"all": func(ctx context.Context, c *leasehold.Client, _ *leasehold.Lock) error {
			return lab.ErrorOf(c.AcquireAll(ctx, leasehold.Keys("b", "c")))
		},
		"any": func(ctx context.Context, c *leasehold.Client, _ *leasehold.Lock) error {
			return lab.ErrorOf(c.AcquireAny(ctx, leasehold.Keys("b", "c")))
		},
		"renew":   func(ctx context.Context, _ *leasehold.Client, lock *leasehold.Lock) error { return lock.Renew(ctx) },
		"release": func(ctx context.Context, _ *leasehold.Client, lock *leasehold.Lock) error { return lock.Release(ctx) },
		"commit": func(ctx context.Context, _ *leasehold.Client, lock *leasehold.Lock) error {
			return lock.Commit(ctx, lab.Writes(lab.Note("a", "1")))
		},
		"read": func(ctx context.Context, _ *leasehold.Client, lock *leasehold.Lock) error {
			return lab.ErrorOf(lock.Read(ctx, nil))
		},
		"get": func(ctx context.Context, c *leasehold.Client, _ *leasehold.Lock) error {
			return lab.ErrorOf(c.Get(ctx, "job"))
		},
		"break": func(ctx context.Context, c *leasehold.Client, lock *leasehold.Lock) error {
			defer func() { _ = lock.Release(ctx) }() // the break ends the grant, and without this Release, Close would report a lost lock
			return c.Break(ctx, lock.Record(), leasehold.BreakOptions{})
		},
		"resume": func(ctx context.Context, c *leasehold.Client, lock *leasehold.Lock) error {
			g, err := lock.Detach()
			if err == nil {
				_, err = c.Resume(ctx, g)
			}
			return err
		},
		"observe": func(ctx context.Context, c *leasehold.Client, _ *leasehold.Lock) error {
			for l, err := range lab.Must(election.New(c, "job"))(t).Observe(ctx) {
				if err != nil || l.Token != 0 {
					return err
				}
			}
			return errors.New("no leader was observed")
		},
	}, func(t *testing.T, w *lab.World, do call) {
		w.Work()
		p := &provider{}
		c := clientOf(w, p, lab.Config())
		lock := w.Acquire(c, "job")
		p.failFor(1500 * time.Millisecond)
		began := time.Now()
		lab.WantErr(t, "the call", do(t.Context(), c, lock), nil)
		lab.WantTook(t, "the call, which succeeds only with credentials, took", began, 1500*time.Millisecond, time.Minute)
		lab.OK(t, c.Close(t.Context()))
	})
}

func TestCredentialErrorIncludesProviderMessage(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		p := &provider{}
		c := clientOf(w, p, lab.Config())
		lock := w.Acquire(c, "job")
		p.failFor(0)
		_, err := c.Acquire(w.Within(10*time.Second), "other")
		lab.WantText(t, "acquire", err, "the vault is sealed", "nothing was sent", "other")
		if !errors.Is(err, errVault) || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("error %v", err)
		}
		if err != nil && (strings.Contains(err.Error(), "no credentials") || strings.Contains(err.Error(), "AWS_PROFILE")) {
			t.Errorf("the client had credentials before: %v", err)
		}
		p.set(nil)
		w.Release(lock)
	})
}

func TestAcquireWithoutCredentialsFailsImmediately(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		p := &provider{}
		p.failFor(0)
		c := clientOf(w, p, lab.Config())
		began := time.Now()
		err := lab.ErrorOf(c.Acquire(t.Context(), "job"))
		lab.WantErr(t, "acquire", err, errVault)
		lab.WantText(t, "acquire", err, "no credentials: set AWS_PROFILE")
		lab.WantTook(t, "acquire took", began, 0, time.Second)
	})
}

func TestCredentialServerErrorIsNotTreatedAsDynamoDBOutage(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		p := &provider{}
		c := clientOf(w, p, lab.OutageConfig())
		lock := w.Acquire(c, "job")
		p.set(&smithy.OperationError{ServiceID: "STS", OperationName: "AssumeRole", Err: &types.InternalServerError{}})
		lab.Elapse(time.Minute)
		lab.WantErr(t, "lock after a minute without credentials", lock.Err(), leasehold.ErrLost)
		p.set(nil)
		if err := c.Close(t.Context()); err != nil && !errors.Is(err, leasehold.ErrLost) {
			t.Error(err)
		}
	})
}

func TestCauseShowsWhetherContextWasCancelledOrTimedOut(t *testing.T) {
	why := errors.New("why")
	deadline := func(cause error) context.Context {
		ctx, cancel := context.WithDeadlineCause(t.Context(), time.Now(), cause)
		t.Cleanup(cancel)
		return ctx
	}
	canceled := func(cause error) context.Context {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		return ctx
	}
	for name, tc := range map[string]struct {
		ctx                context.Context
		deadline, canceled bool
	}{
		"deadline":               {deadline(nil), true, false},
		"deadline with a cause":  {deadline(why), true, false},
		"cancelled":              {canceled(nil), false, true},
		"cancelled with a cause": {canceled(why), false, true},
		"cancelled by Cause":     {canceled(attempts.Cause(deadline(why))), true, false},
		"client closed":          {canceled(attempts.ErrClosed), false, false},
		"not ended":              {t.Context(), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := attempts.Cause(tc.ctx)
			lab.WantErr(t, "error", err, context.Cause(tc.ctx))
			if errors.Is(err, context.DeadlineExceeded) != tc.deadline || errors.Is(err, context.Canceled) != tc.canceled {
				t.Errorf("%v matches DeadlineExceeded: %t, Canceled: %t", err, !tc.deadline, !tc.canceled)
			}
			if err != nil && err.Error() != context.Cause(tc.ctx).Error() {
				t.Errorf("the error text is %q", err)
			}
		})
	}
}

func TestPatientlySendsFailingRequestThreeTimes(t *testing.T) {
	for name, send := range map[string]func(context.Context) error{
		"without an answer": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"throttled":         func(context.Context) error { return &types.ProvisionedThroughputExceededException{} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, n := time.Now(), 0
				err := attempts.Patiently(t.Context(), func(ctx context.Context) error {
					n++
					return send(ctx)
				})
				if took := time.Since(began); err == nil || n != 3 || took > 10*time.Second {
					t.Errorf("%d requests in %v: %v", n, took, err)
				}
			})
		})
	}
}
