//go:build linux

package fencing

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// twoHolders returns two locks of the same key. The holder of the first lock was suspended
// past its lease. Then another client took the key over, and holds the second lock.
func twoHolders(t *testing.T) (stale, current *leasehold.Lock) {
	t.Helper()
	engine := localdynamo.New()
	t.Cleanup(func() { engine.Close() })
	lab.OK(t, table.Create(t.Context(), engine.Client(), table.Spec{Name: "locks"}))
	hold := func(opts ...leasehold.AcquireOption) *leasehold.Lock {
		locks := lab.Must(leasehold.New(engine.Client(), leasehold.Config{
			Table: "locks", Lease: time.Second, Logger: slog.New(slog.DiscardHandler),
		}))(t)
		t.Cleanup(func() { locks.Close(context.Background()) })
		return lab.Must(locks.Acquire(t.Context(), "k", opts...))(t)
	}
	stale = hold(leasehold.WithoutRenewal()) // without renewals, as if the holder's process was suspended
	current = hold()
	if stale.Err() == nil || stale.Token() >= current.Token() {
		t.Fatalf("tokens %d and then %d, the first lost: %v", stale.Token(), current.Token(), stale.Err())
	}
	return stale, current
}
