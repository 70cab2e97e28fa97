package adapters

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"github.com/pressly/goose/v3/lock/locktesting"
	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	_ "modernc.org/sqlite" // registers the database driver
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/contrib/byname"
	"github.com/leasehold-go/leasehold/election"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/locktest"
)

// newManager returns a controller-runtime manager that runs the given function. The manager
// watches no resources, so it needs no Kubernetes cluster.
func newManager(run func(ctx context.Context) error) (manager.Manager, error) {
	stopIn := time.Second // less than the safety margin of a 20 s lease, so that the manager stops before the lease expires
	mgr, err := manager.New(&rest.Config{Host: "127.0.0.1:1"}, manager.Options{
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		GracefulShutdownTimeout: &stopIn,
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			return meta.NewDefaultRESTMapper([]schema.GroupVersion{}), nil
		},
	})
	if err != nil {
		return nil, err
	}
	return mgr, mgr.Add(manager.RunnableFunc(run))
}

func TestControllerRuntimeManagerRunsOnlyInLeader(t *testing.T) {
	inBubble(t, func(t *testing.T, env *locktest.Env) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var inside, terms atomic.Int32
		done := make(chan error)
		var clients []*leasehold.Client
		leads := make([]atomic.Bool, 2)
		for i := range leads {
			locks := env.Client(leasehold.Config{})
			clients = append(clients, locks)
			e := lab.Must(election.New(locks, "operator"))(t)
			go func() {
				done <- LeadManager(ctx, e, "", func() (manager.Manager, error) {
					return newManager(func(ctx context.Context) error {
						lab.Want(t, "managers that run", inside.Add(1), 1)
						terms.Add(1)
						leads[i].Store(true)
						<-ctx.Done()
						leads[i].Store(false)
						inside.Add(-1)
						return nil
					})
				})
			}()
		}
		lab.Elapse(time.Minute)
		if inside.Load() != 1 || terms.Load() != 1 {
			t.Fatalf("%d managers run, in %d terms", inside.Load(), terms.Load())
		}
		first := 0
		if leads[1].Load() {
			first = 1
		}
		env.Disconnect(clients[first])
		lab.Elapse(time.Minute)
		if leads[first].Load() || !leads[1-first].Load() {
			t.Error("the other process did not take over")
		}
		env.Reconnect(clients[first])
		env.Disconnect(clients[1-first])
		lab.Elapse(time.Minute)
		if !leads[first].Load() || terms.Load() != 3 {
			t.Errorf("the first process did not lead again with a new manager; %d terms", terms.Load())
		}
		cancel()
		for range leads {
			lab.WantErr(t, "the end", <-done, context.Canceled)
		}
	})
}

// journal is a cron logger that counts skipped jobs and keeps the last error.
type journal struct {
	skipped atomic.Int32
	failed  atomic.Pointer[error]
}

func (j *journal) Info(msg string, _ ...any) {
	if msg == "skip" {
		j.skipped.Add(1)
	}
}

func (j *journal) Error(err error, _ string, _ ...any) { j.failed.Store(&err) }

func TestCronJobRunsInOneProcessAtATime(t *testing.T) {
	inBubble(t, func(t *testing.T, env *locktest.Env) {
		var runs, inside atomic.Int32
		var said journal
		var processes []*cron.Cron
		for range 3 {
			c := cron.New(cron.WithChain(Locked(t.Context(), env.Client(leasehold.Config{}), "reports", &said)))
			lab.Must(c.AddFunc("@every 1h", func() {
				lab.Want(t, "processes that run the job", inside.Add(1), 1)
				time.Sleep(40 * time.Minute)
				inside.Add(-1)
				runs.Add(1)
			}))(t)
			c.Start()
			processes = append(processes, c)
		}
		lab.Elapse(2*time.Hour + 50*time.Minute)
		for _, c := range processes {
			<-c.Stop().Done()
		}
		lab.Want(t, "runs in two hours", runs.Load(), 2)
		lab.Want(t, "runs that were skipped", said.skipped.Load(), 4)
		if err := said.failed.Load(); err != nil {
			t.Error(*err)
		}
	})
}

func TestLostLockCancelsContextOfCronJob(t *testing.T) {
	inBubble(t, func(t *testing.T, env *locktest.Env) {
		var said journal
		c := cron.New()
		stopped := make(chan error, 1)
		c.Schedule(cron.Every(time.Hour), LockedJob(t.Context(), env.Client(leasehold.Config{}), "reports", &said, func(ctx context.Context, _ *leasehold.Lock) error {
			env.Steal("reports")
			<-ctx.Done()
			stopped <- context.Cause(ctx)
			return nil
		}))
		c.Start()
		lab.WantErr(t, "cause of the context's end", <-stopped, leasehold.ErrLost)
		<-c.Stop().Done()
		if err := said.failed.Load(); err == nil || !errors.Is(*err, leasehold.ErrLost) {
			t.Errorf("logged %v", err)
		}
	})
}

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
	lab.Variants(t, map[string]func(*byname.Database) goose.ProviderOption{
		"Locker":        func(d *byname.Database) goose.ProviderOption { return goose.WithLocker(d) },
		"SessionLocker": func(d *byname.Database) goose.ProviderOption { return goose.WithSessionLocker(d) },
	}, func(t *testing.T, with func(*byname.Database) goose.ProviderOption) {
		env, path := locktest.New(t), filepath.Join(t.TempDir(), "orders.db")
		locktesting.TestProviderLocking(t, func(t *testing.T) *goose.Provider {
			names := namesOf(t, env, leasehold.Config{}, "migrate/")
			return lab.Must(goose.NewProvider(goose.DialectSQLite3, open(t, path), migrations, with(names.ForDatabase("orders"))))(t)
		})
	})
}

func TestGooseLockersExcludeEachOther(t *testing.T) {
	env := locktest.New(t)
	db := open(t, filepath.Join(t.TempDir(), "orders.db"))
	locktesting.TestConcurrentLocking(t, db, func(t *testing.T) lock.Locker {
		return namesOf(t, env, leasehold.Config{}, "migrate/").ForDatabase("orders")
	}, 2*time.Second) // time limit of each Lock call; the locker that is granted the lock holds it twice as long
}

func TestGooseMigrationReturnsErrLostIfLockIsLost(t *testing.T) {
	env := locktest.New(t)
	names := namesOf(t, env, leasehold.Config{}, "migrate/")
	migration := goose.NewGoMigration(1, &goose.GoFunc{RunDB: func(context.Context, *sql.DB) error {
		env.Steal("migrate/orders")
		return nil
	}}, nil)
	p := lab.Must(goose.NewProvider(goose.DialectSQLite3, open(t, filepath.Join(t.TempDir(), "orders.db")), nil,
		goose.WithGoMigrations(migration), goose.WithLocker(names.ForDatabase("orders"))))(t)
	lab.WantErr(t, "migrating without the lock", lab.ErrorOf(p.Up(t.Context())), leasehold.ErrLost)
}

func TestClientDoCancelsGooseMigrationIfLockIsLost(t *testing.T) {
	env := locktest.New(t)
	locks := env.Client(leasehold.Config{Lease: time.Second})
	migration := goose.NewGoMigration(1, &goose.GoFunc{RunDB: func(ctx context.Context, _ *sql.DB) error {
		env.Steal("migrate/orders")
		<-ctx.Done() // if the migration's context did not end, this line would block forever
		return context.Cause(ctx)
	}}, nil)
	p := lab.Must(goose.NewProvider(goose.DialectSQLite3, open(t, filepath.Join(t.TempDir(), "orders.db")), nil, goose.WithGoMigrations(migration)))(t)
	err := locks.Do(t.Context(), "migrate/orders", func(ctx context.Context, _ *leasehold.Lock) error {
		return lab.ErrorOf(p.Up(ctx))
	})
	lab.WantErr(t, "a migration without the lock", err, leasehold.ErrLost)
}
