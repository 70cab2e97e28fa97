package fence_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/machine"
)

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
		if err := lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"))); err != nil {
			t.Error(err)
		}
		// The commit does not learn when the SDK has read the caller's values, so the
		// caller waits for the reply.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := lock.Commit(ctx, lab.Writes(lab.Note("a", "2"))); err != nil {
			t.Errorf("commit: %v", err)
		}
		w.WantLog("1", "2")
		w.Release(lock)
	})
}
