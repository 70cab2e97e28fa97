//go:build linux

package interop

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/interop/engines"
	"github.com/leasehold-go/leasehold/rwlock"
	"github.com/leasehold-go/leasehold/table"
)

// TestReadWriteLocksOnRealEngines has every request of a read/write lock
// answered by servers that this project did not write: they update and compare
// inside of maps.
func TestReadWriteLocksOnRealEngines(t *testing.T) {
	for _, e := range engines.All() {
		t.Run(e.Name, func(t *testing.T) {
			db := engines.Run(t, e).Client()
			ctx := t.Context()
			if err := table.Create(ctx, db, table.Spec{Name: "locks"}); err != nil {
				t.Fatal(err)
			}
			locks, err := leasehold.New(db, leasehold.Config{Table: "locks", Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = locks.Close(context.WithoutCancel(ctx)) }()
			rw, err := rwlock.New(locks, "set")
			if err != nil {
				t.Fatal(err)
			}
			must := func(lock *leasehold.Lock, err error) *leasehold.Lock {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				return lock
			}
			ok := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}

			first, second := must(rw.AcquireRead(ctx)), must(rw.AcquireRead(ctx))
			ok(first.Renew(ctx))
			ok(first.Commit(ctx, nil))
			if _, err := rw.AcquireWrite(ctx, leasehold.NoWait()); !errors.Is(err, leasehold.ErrHeld) {
				t.Fatalf("a writer beside readers: %v", err)
			}
			guards := first.Guards()
			ok(first.Release(ctx))
			if err := second.CommitAndRelease(ctx, nil); err != nil {
				t.Fatal(err)
			}

			// One that dies after a second, a writer that intends, and takes over.
			abandoned := must(rw.AcquireRead(ctx, leasehold.WithoutRenewal(), leasehold.WithLease(time.Second)))
			writer := must(rw.AcquireWrite(ctx))
			if dead, took := writer.TookOver(); !took || dead.Grant != abandoned.Record().Grant {
				t.Errorf("took over %+v, %v", dead, took)
			}
			ok(writer.Renew(ctx))
			ok(writer.Commit(ctx, nil))
			if lost := (*leasehold.LostError)(nil); !errors.As(abandoned.Commit(ctx, nil), &lost) {
				t.Error("who was taken over commits")
			}
			if reader, err := rw.AcquireRead(ctx, leasehold.NoWait()); !errors.Is(err, leasehold.ErrHeld) {
				t.Errorf("a reader beside a writer: %v, %v", reader, err)
			}
			ok(writer.Release(ctx))
			if err := first.GuardError(transact(ctx, db, guards...), 0); !errors.Is(err, leasehold.ErrLost) {
				t.Errorf("the guard of a reader that left: %v", err)
			}

			must(rw.AcquireWrite(ctx, leasehold.WithoutRenewal(), leasehold.WithLease(time.Second)))
			last := must(rw.AcquireRead(ctx))
			if _, took := last.TookOver(); !took {
				t.Error("a dead writer was not taken over")
			}
			record, err := locks.Get(ctx, "set")
			ok(err)
			ok(locks.Break(ctx, record))
			if err := last.Renew(ctx); !errors.Is(err, leasehold.ErrLost) {
				t.Errorf("a broken reader renews: %v", err)
			}
			ok(must(rw.AcquireWrite(ctx, leasehold.NoWait())).Release(ctx))
		})
	}
}

func transact(ctx context.Context, db *dynamodb.Client, items ...types.TransactWriteItem) error {
	_, err := db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: items})
	return err
}
