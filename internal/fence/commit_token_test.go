package fence_test

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
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/machine"
)

// DynamoDB forgets an idempotency token after ten minutes, and so does the engine. A
// request that is repeated later would be another commit.
func TestCommitIsNotRepeatedIfTokenExpiredDuringSuspend(t *testing.T) {
	lab.Each(t, map[string]func(*lab.World){
		"the lock still held":    func(*lab.World) {},
		"the lock had by others": func(w *lab.World) { w.Steal("job") },
	}, func(t *testing.T, w *lab.World, meanwhile func(*lab.World)) {
		cfg := lab.Config()
		cfg.Lease = time.Hour
		k := &lab.Jumps{}
		c, wire := w.Work().Client(cfg, k.Edit)
		lock := w.Acquire(c, "job", leasehold.WithoutRenewal())
		wire.Sent()
		wire.SetFault(lab.Once(lab.Call.Commits, func(r *lab.Request) (*http.Response, error) {
			_, _ = r.Send()
			time.Sleep(20 * time.Minute)
			k.Mono.Store(int64(-20 * time.Minute)) // the monotonic clock stopped while the machine was suspended
			meanwhile(w)
			return nil, lab.ErrReset
		}))
		ctx := w.Within(time.Hour)
		if err := lock.Commit(ctx, lab.Writes(lab.Note("a", "1"))); !errors.Is(err, leasehold.ErrUnknownOutcome) || ctx.Err() != nil {
			t.Errorf("commit: %v", err)
		}
		if n := lab.Commits(wire.Sent()); n != 1 {
			t.Errorf("%d commits sent", n)
		}
		w.WantLog("1")
		_ = lock.Release(t.Context())
	})
}

// slowKeys is a credential provider whose first answer is late, as after a pause of the
// process.
type slowKeys struct {
	pause atomic.Int64
}

func (k *slowKeys) Retrieve(context.Context) (aws.Credentials, error) {
	time.Sleep(time.Duration(k.pause.Swap(0)))
	return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
}

func TestCommitIsNotSentIfTokenExpiredBeforeSigning(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		wire, keys := w.Work().Wire(), &slowKeys{}
		cfg := lab.Config()
		cfg.Lease = time.Hour
		c := w.ClientOf(w.Connect(nil, func(o *dynamodb.Options) { o.HTTPClient, o.Credentials = wire, keys }), cfg)
		lock := w.Acquire(c, "job", leasehold.WithoutRenewal())
		wire.Sent()
		wire.SetFault(lab.Once(lab.Call.Commits, func(r *lab.Request) (*http.Response, error) {
			_, _ = r.Send()
			keys.pause.Store(int64(11 * time.Minute)) // the pause lies between the check of the token's age and the signing
			return nil, lab.ErrReset
		}))
		lab.WantErr(t, "commit", lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"))), leasehold.ErrUnknownOutcome)
		if n := lab.Commits(wire.Sent()); n != 1 {
			t.Errorf("%d commits sent", n)
		}
		w.WantLog("1")

		// A commit whose first request was delayed has written nothing, and its error says
		// so.
		keys.pause.Store(int64(11 * time.Minute))
		err := lock.Commit(t.Context(), lab.Writes(lab.Note("a", "2")))
		if err == nil || errors.Is(err, leasehold.ErrUnknownOutcome) || lab.Commits(wire.Sent()) != 0 {
			t.Errorf("commit that was never sent: %v", err)
		}
		w.Release(lock)
	})
}

// plain wraps a client. Its methods have the same signatures as the SDK's, but drop the
// options of each call.
type plain struct{ machine.DB }

func (p plain) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return p.DB.TransactWriteItems(ctx, in)
}

func TestCommitWorksIfClientWrapperDropsOptions(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		w.Work()
		slowly := w.Wire()
		slowly.SetFault(lab.Script(nil, lab.Slow(2*time.Second)))
		c := w.ClientOf(plain{w.Connect(nil, func(o *dynamodb.Options) { o.HTTPClient = slowly })}, lab.Config())
		lock := w.Acquire(c, "job")
		lab.WantErr(t, "commit", lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"))), nil)
		// The commit does not learn when the SDK has read the caller's values, so the
		// caller waits for the reply.
		lab.WantErr(t, "commit", lock.Commit(w.Within(time.Second), lab.Writes(lab.Note("a", "2"))), nil)
		w.WantLog("1", "2")
		w.Release(lock)
	})
}
