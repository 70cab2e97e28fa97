package leasehold_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/machine"
)

// wrapped is a DB between a client and the SDK, which may not look at the
// deadline of what it is given.
type wrapped struct {
	machine.DB
	update func() error
	get    func()
}

func (d wrapped) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if err := d.update(); err != nil {
		return nil, err
	}
	return d.DB.UpdateItem(ctx, in, o...)
}

func (d wrapped) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	d.get()
	return d.DB.GetItem(ctx, in, o...)
}

func TestNoRenewalIsSentIfTrustEndsWhileItIsPrepared(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		k := &lab.Jumps{}
		held, paused, renewed := false, false, 0
		c := w.ClientOf(wrapped{
			DB: w.Connect([]lab.Edit{k.Edit}),
			update: func() error {
				switch {
				case !held:
					return nil
				case paused:
					t.Error("renewed after the end of trust")
				}
				renewed++
				return lab.ErrReset
			},
			get: func() { // to settle what has had no answer
				paused = true
				k.Boot.Store(int64(2 * time.Hour)) // suspended: no timer has run
			},
		}, lab.Config())
		lock := w.Acquire(c, "job", leasehold.WithoutRenewal(), leasehold.WithLease(time.Hour))
		held = true
		if err := lock.Renew(t.Context()); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("renew: %v", err)
		}
		if !paused || renewed == 0 {
			t.Errorf("the record was not read after %d attempts", renewed)
		}
		held = false
		_ = lock.Release(t.Context())
	})
}

func TestAPausedProcessDoesNotHoldThroughAnOutage(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := lab.Config()
		cfg.HoldThroughOutage = true
		k := &lab.Jumps{}
		c, wire := w.Client(cfg, k.Edit)
		lock := w.Acquire(c, "job")
		wire.SetFault(out)
		lab.Elapse(time.Minute)
		if err := lock.Err(); err != nil {
			t.Fatalf("not held on to: %v", err)
		}
		k.Boot.Store(int64(21 * time.Second)) // suspended: nobody has said since that DynamoDB is out
		if err := lock.Err(); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("believed in after a pause longer than a lease: %v", err)
		}
		_ = lock.Release(t.Context())
	})
}
