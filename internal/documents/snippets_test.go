package documents_test

import (
	"cmp"
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/rwlock"
	"github.com/leasehold-go/leasehold/semaphore"
	"github.com/leasehold-go/leasehold/table"
)

// openDB returns a client of the embedded engine, with a lock table.
func openDB(t *testing.T, name string, l layout.Layout) *dynamodb.Client {
	t.Helper()
	db := localdynamo.New().Client()
	lab.OK(t, table.Create(t.Context(), db, table.Spec{Name: name, Layout: l}))
	return db
}

// openLocks returns a client that is closed when the test ends.
func openLocks(t *testing.T) *leasehold.Client {
	t.Helper()
	locks := lab.Must(leasehold.New(openDB(t, "locks", nil), leasehold.Config{Table: "locks"}))(t)
	t.Cleanup(func() { lab.OK(t, locks.Close(context.Background())) })
	return locks
}

// granted checks the results of leasehold.New. It fails the test if err is not nil, or if the
// client cannot acquire and release a key. Finally, granted closes the client.
func granted(t *testing.T, locks *leasehold.Client, err error) {
	t.Helper()
	lab.OK(t, err)
	lab.OK(t, locks.Do(t.Context(), "order/17", func(ctx context.Context, _ *leasehold.Lock) error { return ctx.Err() }))
	lab.OK(t, locks.Close(context.Background()))
}

func TestElectionSnippetElectsLeader(t *testing.T) {
	locks := openLocks(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	schedule := func(ctx context.Context, _ *leasehold.Lock) error {
		<-ctx.Done()
		return ctx.Err()
	}
	e, err := election.New(locks, "scheduler")
	lab.OK(t, err)
	seen := make(chan string, 1)
	go func() {
		defer close(seen)
		for leader, err := range e.Observe(ctx) {
			if err == nil && leader.Token != 0 {
				seen <- leader.Value
				stop()
				return
			}
		}
	}()
	err = e.Lead(ctx, "10.0.0.7:8080", func(ctx context.Context, term *leasehold.Lock) error {
		return schedule(ctx, term)
	})
	if value := <-seen; value != "10.0.0.7:8080" || !errors.Is(err, context.Canceled) {
		t.Errorf("the leader %q was observed, %v", value, err)
	}
}

func TestSemaphoreSnippetAcquiresPermitAndRunsJob(t *testing.T) {
	ctx, locks, job, drawn := t.Context(), openLocks(t), "frame 7", ""
	draw := func(ctx context.Context, job string) error {
		drawn = job
		return ctx.Err()
	}
	gpu, err := semaphore.New(locks, "gpu", 3)
	lab.OK(t, err)
	permit, err := gpu.Acquire(ctx)
	lab.OK(t, err)
	err = permit.Do(ctx, func(ctx context.Context, _ *leasehold.Lock) error { return draw(ctx, job) })
	if err != nil || drawn != job {
		t.Errorf("%q was drawn, %v", drawn, err)
	}
}

func TestRWLockSnippetAcquiresReadLockAndThenWriteLock(t *testing.T) {
	ctx, locks := t.Context(), openLocks(t)
	rw, err := rwlock.New(locks, "dataset/7", 8)
	lab.OK(t, err)
	r, err := rw.AcquireRead(ctx)
	lab.OK(t, err)
	lab.OK(t, r.Release(ctx))
	w, err := rw.AcquireWrite(ctx)
	lab.OK(t, err)
	lab.OK(t, w.Release(ctx))
}

func TestDailyReportSnippetRunsReportOnlyOnce(t *testing.T) {
	ctx, locks, reports := t.Context(), openLocks(t), 0
	report := func(ctx context.Context, _ *leasehold.Lock) error {
		reports++
		return ctx.Err()
	}
	once := func() error {
		err := locks.Do(ctx, "nightly-report", report, leasehold.Every(24*time.Hour))
		if errors.Is(err, leasehold.ErrDone) {
			return nil
		}
		return err
	}
	if err := errors.Join(once(), once()); err != nil || reports != 1 {
		t.Errorf("%d reports, %v", reports, err)
	}
}

func TestTimingPageSnippetCreatesWorkingClient(t *testing.T) {
	db := openDB(t, "locks", nil)
	locks, err := leasehold.New(db, leasehold.Config{
		Table:      "locks",
		Lease:      time.Minute,
		RenewEvery: 10 * time.Second,
		Margin:     15 * time.Second,
	})
	granted(t, locks, err)
}

func TestSnippetWithOnEventCallbackCreatesWorkingClient(t *testing.T) {
	db := openDB(t, "locks", nil)
	var lost atomic.Int64
	locks, err := leasehold.New(db, leasehold.Config{Table: "locks", OnEvent: func(_ context.Context, e leasehold.Event) {
		if e.Kind == leasehold.EventLost {
			lost.Add(1)
		}
	}})
	granted(t, locks, err)
	lab.Want(t, "losses", lost.Load(), 0)
}

func TestSchemaMigrationSnippetRunsOneMigration(t *testing.T) {
	ctx, locks := t.Context(), openLocks(t)
	var p provider
	err := locks.Do(ctx, "migrate/orders", func(ctx context.Context, _ *leasehold.Lock) error {
		_, err := p.Up(ctx)
		return err
	})
	if err != nil || p.ran != 1 {
		t.Errorf("%d migrations, %v", p.ran, err)
	}
}

// provider replaces goose.Provider, which the snippet in docs/integrations.md uses.
type provider struct{ ran int }

// Up counts how often it is called, and migrates nothing.
func (p *provider) Up(ctx context.Context) (results []string, err error) {
	p.ran++
	return nil, ctx.Err()
}

func TestLayoutSnippetsCreateWorkingClients(t *testing.T) {
	t.Run("dynamolock", func(t *testing.T) {
		t.Setenv("LOCK_LAYOUT", "dynamolock")
		db := openDB(t, "locks", layout.Dynamolock{})
		l, err := layout.Parse(os.Getenv("LOCK_LAYOUT"))
		if err != nil {
			t.Fatal(err)
		}
		locks, err := leasehold.New(db, leasehold.Config{Table: "locks", Layout: l})
		granted(t, locks, err)
	})
	t.Run("dynamo-dlm", func(t *testing.T) {
		db := openDB(t, "dynamo_dlm_locks", layout.DynamoDLM{})
		locks, err := leasehold.New(db, leasehold.Config{
			Table:  "dynamo_dlm_locks",
			Layout: layout.DynamoDLM{MaxSkew: time.Second},
		})
		granted(t, locks, err)
	})
	t.Run("dyndb-mutex", func(t *testing.T) {
		db := openDB(t, "Mutex", layout.DyndbMutex{})
		locks, err := leasehold.New(db, leasehold.Config{
			Table:  cmp.Or(os.Getenv("DD_MUTEX_TABLE_NAME"), "Mutex"),
			Layout: layout.DyndbMutex{MaxSkew: time.Second},
		})
		granted(t, locks, err)
	})
	t.Run("java", func(t *testing.T) {
		db := openDB(t, "LockTable", layout.AWSLabs{PartitionKey: "lockId", SortKey: "shard", SortValue: "0"})
		locks, err := leasehold.New(db, leasehold.Config{
			Table:           "LockTable",
			Layout:          layout.AWSLabs{PartitionKey: "lockId", SortKey: "shard", SortValue: "0"},
			DeleteOnRelease: true,
		})
		granted(t, locks, err)
	})
}
