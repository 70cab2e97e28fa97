package leasehold_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
)

// DynamoDB forgets an idempotency token after ten minutes, as the engine does:
// a commit sent again under one that it has forgotten is another commit.

func TestACommitIsNotRepeatedUnderATokenThatGrewOldInSuspend(t *testing.T) {
	for name, meanwhile := range map[string]func(*world){
		"the lock still held":    func(*world) {},
		"the lock had by others": func(w *world) { w.steal("job") },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				cfg := config()
				cfg.Lease = time.Hour
				c, wire := w.work().client(cfg)
				k := newClocks(c)
				lock := w.acquire(c, "job", leasehold.WithoutRenewal())
				wire.sent()
				wire.setFault(once(call.commits, func(_ context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
					_, _ = next()
					time.Sleep(20 * time.Minute)
					k.mono.Store(int64(-20 * time.Minute)) // the machine was suspended
					meanwhile(w)
					return nil, errReset
				}))
				if err := lock.Commit(t.Context(), writes(note("a", "1"))); !errors.Is(err, leasehold.ErrUnknownOutcome) {
					t.Errorf("commit: %v", err)
				}
				if n := commits(wire.sent()); n != 1 {
					t.Errorf("%d commits sent", n)
				}
				w.wantLog("1")
				_ = lock.Release(t.Context())
			})
		})
	}
}

// slowKeys are credentials that take a pause of the process to be had, once.
type slowKeys struct {
	pause atomic.Int64
}

func (k *slowKeys) Retrieve(context.Context) (aws.Credentials, error) {
	time.Sleep(time.Duration(k.pause.Swap(0)))
	return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
}

func TestACommitThatIsSignedAfterAPauseIsNotSentUnderAnOldToken(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		wire, keys := &wire{engine: w.work().engine}, &slowKeys{}
		cfg := config()
		cfg.Lease = time.Hour
		c, err := leasehold.New(w.engine.Client(func(o *dynamodb.Options) { o.HTTPClient, o.Credentials = wire, keys }), cfg)
		if err != nil {
			t.Fatal(err)
		}
		leasehold.VirtualClocks(c)
		lock := w.acquire(c, "job", leasehold.WithoutRenewal())
		wire.sent()
		wire.setFault(once(call.commits, func(_ context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
			_, _ = next()
			keys.pause.Store(int64(11 * time.Minute)) // behind the look at the token's age, before the signing
			return nil, errReset
		}))
		if err := lock.Commit(t.Context(), writes(note("a", "1"))); !errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("commit: %v", err)
		}
		if n := commits(wire.sent()); n != 1 {
			t.Errorf("%d commits sent", n)
		}
		w.wantLog("1")

		// One whose first request was held up has written nothing, and says so.
		keys.pause.Store(int64(11 * time.Minute))
		err = lock.Commit(t.Context(), writes(note("a", "2")))
		if err == nil || errors.Is(err, leasehold.ErrUnknownOutcome) || commits(wire.sent()) != 0 {
			t.Errorf("commit that was never sent: %v", err)
		}
		w.release(lock)
	})
}
