package adapters

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"github.com/pressly/goose/v3/lock/locktesting"
	_ "modernc.org/sqlite" // registers the database driver

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/contrib/byname"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/locktest"
)

// byname.Database implements the interfaces that goose needs.
var (
	_ lock.Locker        = (*byname.Database)(nil)
	_ lock.SessionLocker = (*byname.Database)(nil)
)

// migrations contains two migrations for SQLite. goose has no lock of its own for SQLite.
var migrations = fstest.MapFS{
	"1_orders.sql": {Data: []byte("-- +goose Up\nCREATE TABLE orders (id INTEGER);\n")},
	"2_prices.sql": {Data: []byte("-- +goose Up\nCREATE TABLE prices (id INTEGER);\n")},
}

// open opens the SQLite database at path, which several processes share.
func open(t *testing.T, path string) *sql.DB {
	t.Helper()
	db := lab.Must(sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(60000)"))(t)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestGooseMigratesInOneProcessAtATime(t *testing.T) {
	for name, with := range map[string]func(*byname.Database) goose.ProviderOption{
		"Locker":        func(d *byname.Database) goose.ProviderOption { return goose.WithLocker(d) },
		"SessionLocker": func(d *byname.Database) goose.ProviderOption { return goose.WithSessionLocker(d) },
	} {
		t.Run(name, func(t *testing.T) {
			env, path := locktest.New(t), filepath.Join(t.TempDir(), "orders.db")
			locktesting.TestProviderLocking(t, func(t *testing.T) *goose.Provider {
				names := namesOf(t, env, leasehold.Config{}, "migrate/")
				return lab.Must(goose.NewProvider(goose.DialectSQLite3, open(t, path), migrations, with(names.ForDatabase("orders"))))(t)
			})
		})
	}
}

func TestGooseLockersExcludeEachOther(t *testing.T) {
	env := locktest.New(t)
	db := open(t, filepath.Join(t.TempDir(), "orders.db"))
	locktesting.TestConcurrentLocking(t, db, func(t *testing.T) lock.Locker {
		return namesOf(t, env, leasehold.Config{}, "migrate/").ForDatabase("orders")
	}, time.Second)
}

func TestGooseReportsLostLock(t *testing.T) {
	env := locktest.New(t)
	names := namesOf(t, env, leasehold.Config{}, "migrate/")
	migration := goose.NewGoMigration(1, &goose.GoFunc{RunDB: func(context.Context, *sql.DB) error {
		env.Steal("migrate/orders")
		return nil
	}}, nil)
	p := lab.Must(goose.NewProvider(goose.DialectSQLite3, open(t, filepath.Join(t.TempDir(), "orders.db")), nil,
		goose.WithGoMigrations(migration), goose.WithLocker(names.ForDatabase("orders"))))(t)
	if _, err := p.Up(t.Context()); !errors.Is(err, leasehold.ErrLost) {
		t.Errorf("migrated without the lock: %v", err)
	}
}

func TestMigrationInsideDoStopsWhenLockIsLost(t *testing.T) {
	env := locktest.New(t)
	locks := env.Client(leasehold.Config{Lease: time.Second})
	migration := goose.NewGoMigration(1, &goose.GoFunc{RunDB: func(ctx context.Context, _ *sql.DB) error {
		env.Steal("migrate/orders")
		<-ctx.Done() // this line blocks the test forever if the migration's context does not end
		return context.Cause(ctx)
	}}, nil)
	p := lab.Must(goose.NewProvider(goose.DialectSQLite3, open(t, filepath.Join(t.TempDir(), "orders.db")), nil, goose.WithGoMigrations(migration)))(t)
	err := locks.Do(t.Context(), "migrate/orders", func(ctx context.Context, _ *leasehold.Lock) error {
		return lab.ErrorOf(p.Up(ctx))
	})
	if !errors.Is(err, leasehold.ErrLost) {
		t.Errorf("migrated without the lock: %v", err)
	}
}
