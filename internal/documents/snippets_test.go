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
	if err := table.Create(t.Context(), db, table.Spec{Name: name, Layout: l}); err != nil {
		t.Fatal(err)
	}
	return db
}

// openLocks returns a client that is closed when the test ends.
func openLocks(t *testing.T) *leasehold.Client {
	t.Helper()
	locks, err := leasehold.New(openDB(t, "locks", nil), leasehold.Config{Table: "locks"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, locks) })
	return locks
}

// closed closes a client.
func closed(t *testing.T, locks *leasehold.Client) {
	t.Helper()
	if err := locks.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// granted acquires and releases a key, and closes the client.
func granted(t *testing.T, locks *leasehold.Client) {
	t.Helper()
	defer closed(t, locks)
	if err := locks.Do(t.Context(), "order/17", func(ctx context.Context, _ *leasehold.Lock) error { return ctx.Err() }); err != nil {
		t.Error(err)
	}
}

func TestElectionSnippetRuns(t *testing.T) {
	locks := openLocks(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	schedule := func(ctx context.Context, _ *leasehold.Lock) error {
		<-ctx.Done()
		return ctx.Err()
	}
	e, err := election.New(locks, "scheduler")
	if err != nil {
		t.Fatal(err)
	}
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

func TestSemaphoreSnippetRuns(t *testing.T) {
	ctx, locks, job, drawn := t.Context(), openLocks(t), "frame 7", ""
	draw := func(ctx context.Context, job string) error {
		drawn = job
		return ctx.Err()
	}
	gpu, err := semaphore.New(locks, "gpu", 3)
	if err != nil {
		t.Fatal(err)
	}
	permit, err := gpu.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	err = permit.Do(ctx, func(ctx context.Context, _ *leasehold.Lock) error { return draw(ctx, job) })
	if err != nil || drawn != job {
		t.Errorf("%q was drawn, %v", drawn, err)
	}
}

func TestRWLockSnippetRuns(t *testing.T) {
	ctx, locks := t.Context(), openLocks(t)
	rw, err := rwlock.New(locks, "dataset/7", 8)
	if err != nil {
		t.Fatal(err)
	}
	r, err := rw.AcquireRead(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Release(ctx); err != nil {
		t.Error(err)
	}
	w, err := rw.AcquireWrite(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Release(ctx); err != nil {
		t.Error(err)
	}
}

func TestEverySnippetRuns(t *testing.T) {
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

func TestTimingSnippetRuns(t *testing.T) {
	db := openDB(t, "locks", nil)
	locks, err := leasehold.New(db, leasehold.Config{
		Table:      "locks",
		Lease:      time.Minute,
		RenewEvery: 10 * time.Second,
		Margin:     15 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	granted(t, locks)
}

func TestOnEventSnippetRuns(t *testing.T) {
	db := openDB(t, "locks", nil)
	var lost atomic.Int64
	locks, err := leasehold.New(db, leasehold.Config{Table: "locks", OnEvent: func(_ context.Context, e leasehold.Event) {
		if e.Kind == leasehold.EventLost {
			lost.Add(1)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	granted(t, locks)
	if n := lost.Load(); n != 0 {
		t.Errorf("%d losses", n)
	}
}

func TestMigrationSnippetsRun(t *testing.T) {
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

// provider replaces goose.Provider.
type provider struct{ ran int }

// Up counts its calls.
func (p *provider) Up(ctx context.Context) (results []string, err error) {
	p.ran++
	return nil, ctx.Err()
}

func TestLayoutSnippetRuns(t *testing.T) {
	t.Run("dynamolock", func(t *testing.T) {
		t.Setenv("LOCK_LAYOUT", "dynamolock")
		db := openDB(t, "locks", layout.Dynamolock{})
		l, err := layout.Parse(os.Getenv("LOCK_LAYOUT"))
		if err != nil {
			t.Fatal(err)
		}
		locks, err := leasehold.New(db, leasehold.Config{Table: "locks", Layout: l})
		if err != nil {
			t.Fatal(err)
		}
		granted(t, locks)
	})
	t.Run("dynamo-dlm", func(t *testing.T) {
		db := openDB(t, "dynamo_dlm_locks", layout.DynamoDLM{})
		locks, err := leasehold.New(db, leasehold.Config{
			Table:  "dynamo_dlm_locks",
			Layout: layout.DynamoDLM{MaxSkew: time.Second},
		})
		if err != nil {
			t.Fatal(err)
		}
		granted(t, locks)
	})
	t.Run("dyndb-mutex", func(t *testing.T) {
		db := openDB(t, "Mutex", layout.DyndbMutex{})
		locks, err := leasehold.New(db, leasehold.Config{
			Table:  cmp.Or(os.Getenv("DD_MUTEX_TABLE_NAME"), "Mutex"),
			Layout: layout.DyndbMutex{MaxSkew: time.Second},
		})
		if err != nil {
			t.Fatal(err)
		}
		granted(t, locks)
	})
	t.Run("java", func(t *testing.T) {
		db := openDB(t, "LockTable", layout.AWSLabs{PartitionKey: "lockId", SortKey: "shard", SortValue: "0"})
		locks, err := leasehold.New(db, leasehold.Config{
			Table:           "LockTable",
			Layout:          layout.AWSLabs{PartitionKey: "lockId", SortKey: "shard", SortValue: "0"},
			DeleteOnRelease: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		granted(t, locks)
	})
}
