package lab

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/machine"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

// World is an in-memory DynamoDB that contains a lock table named "locks".
type World struct {
	T      *testing.T
	Engine *localdynamo.Engine
	DB     *dynamodb.Client // SDK client that sends its requests directly to the engine, so no Fault applies to them

	began time.Time
	over  context.Context // ends when the test ends
	end   context.CancelFunc
}

// New returns a World that is closed when the test ends.
func New(t *testing.T) *World {
	t.Helper()
	w := empty(t)
	w.createTable("locks", "key")
	return w
}

// empty returns a World without tables.
func empty(t *testing.T) *World {
	w := &World{T: t, Engine: localdynamo.New(), began: time.Now()}
	w.over, w.end = context.WithCancel(context.Background())
	t.Cleanup(func() { w.end(); _ = w.Engine.Close() }) // the error is ignored, because closing an in-memory engine cannot fail
	w.DB = w.Engine.Client()
	return w
}

// createTable creates a table whose primary key consists of the given attribute alone.
func (w *World) createTable(name, key string) {
	w.T.Helper()
	_, err := w.DB.CreateTable(w.T.Context(), &dynamodb.CreateTableInput{
		TableName:            aws.String(name),
		BillingMode:          types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String(key), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String(key), AttributeType: types.ScalarAttributeTypeS}},
	})
	if err != nil {
		w.T.Fatal(err)
	}
}

// InBubble runs a test with its own World in a synctest bubble, where time is virtual. The test
// fails if it leaves goroutines running, except goroutines of requests in flight.
func InBubble(t *testing.T, test func(t *testing.T, w *World)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := New(t)
		defer func() { w.end(); synctest.Wait() }() // cancel the requests in flight before the engine is closed
		test(t, w)
	})
}

// InLayout is like InBubble, but the lock table has the given layout. The test's parameter cfg is a
// Config for that table.
func InLayout(t *testing.T, l layout.Layout, test func(t *testing.T, w *World, cfg leasehold.Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := empty(t)
		if err := table.Create(t.Context(), w.DB, table.Spec{Name: "locks", Layout: l}); err != nil {
			t.Fatal(err)
		}
		cfg := Config()
		cfg.Layout = l
		defer func() { w.end(); synctest.Wait() }()
		test(t, w, cfg)
	})
}

// Elapse lets virtual time pass, and then waits until all other goroutines of the bubble are
// blocked.
func Elapse(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// Config returns the leasehold.Config that most tests use.
func Config() leasehold.Config {
	return leasehold.Config{Table: "locks", Owner: "test", Logger: slog.New(slog.DiscardHandler)}
}

// ConfigOf returns a leasehold.Config with the given table and layout.
func ConfigOf(table string, l layout.Layout) leasehold.Config {
	cfg := Config()
	cfg.Table, cfg.Layout = table, l
	return cfg
}

// OutageConfig returns a Config whose layout lets clients keep their locks during an outage of
// DynamoDB.
func OutageConfig() leasehold.Config {
	return ConfigOf("locks", layout.AWSLabs{HoldThroughOutage: true})
}

// SharedConfig returns a Config with which all locks of a client share one lease.
func SharedConfig() leasehold.Config {
	cfg := Config()
	cfg.SharedLease = true
	return cfg
}

// Client returns a new client and its Wire. The client behaves like a separate process: it has its
// own simulated machine, whose clocks follow time.Now by default. The given edits change this
// machine.
func (w *World) Client(cfg leasehold.Config, edits ...Edit) (*leasehold.Client, *Wire) {
	w.T.Helper()
	wire := w.Wire()
	return w.ClientOf(w.Connect(edits, func(o *dynamodb.Options) { o.HTTPClient = wire }), cfg), wire
}

// ClientOf returns a lock client that sends its requests through db.
func (w *World) ClientOf(db leasehold.DB, cfg leasehold.Config) *leasehold.Client {
	w.T.Helper()
	c, err := leasehold.New(db, cfg)
	if err != nil {
		w.T.Fatal(err)
	}
	return c
}

// Connect returns an SDK client of the engine, on a simulated machine. The given edits change that
// machine. A lock client that uses the result runs on that machine.
func (w *World) Connect(edits []Edit, options ...func(*dynamodb.Options)) machine.DB {
	return machine.DB{Client: w.Engine.Client(options...), Edit: func(m *machine.Machine) {
		m.Now = machine.BootedAt(w.began)
		for _, edit := range edits {
			edit(m)
		}
	}}
}

// Acquire acquires a key. It ends the test if the call fails.
func (w *World) Acquire(c *leasehold.Client, key string, opts ...leasehold.AcquireOption) *leasehold.Lock {
	w.T.Helper()
	lock, err := c.Acquire(w.T.Context(), key, opts...)
	if err != nil {
		w.T.Fatal(err)
	}
	return lock
}

// AcquireAll acquires several keys. It ends the test if the call fails.
func (w *World) AcquireAll(c *leasehold.Client, keys []leasehold.Key, opts ...leasehold.AcquireOption) *leasehold.Group {
	w.T.Helper()
	g, err := c.AcquireAll(w.T.Context(), keys, opts...)
	if err != nil {
		w.T.Fatal(err)
	}
	return g
}

// Release releases a lock or a group. It ends the test if the call fails.
func (w *World) Release(held releaser, opts ...leasehold.ReleaseOption) {
	w.T.Helper()
	if err := held.Release(w.T.Context(), opts...); err != nil {
		w.T.Fatal(err)
	}
}

// releaser is a *leasehold.Lock or a *leasehold.Group.
type releaser interface {
	Release(ctx context.Context, opts ...leasehold.ReleaseOption) error
}

// Queue starts a goroutine that acquires a held key, and waits until that goroutine is blocked. It
// returns a channel that receives the goroutine's lock.
func (w *World) Queue(c *leasehold.Client, key string) <-chan *leasehold.Lock {
	next := make(chan *leasehold.Lock, 1)
	go func() { next <- w.Acquire(c, key) }()
	synctest.Wait()
	return next
}

// Detach detaches a lock. It ends the test if the call fails.
func (w *World) Detach(lock *leasehold.Lock) leasehold.Grant {
	w.T.Helper()
	g, err := lock.Detach()
	if err != nil {
		w.T.Fatal(err)
	}
	return g
}

// IsReleased reports whether the record of a key is marked as released.
func (w *World) IsReleased(key string) bool { return Text(w.Item(key), "isReleased") == "1" }

// Sessions returns the keys of the session rows in the table.
func (w *World) Sessions() []string {
	w.T.Helper()
	var keys []string
	for _, item := range w.Scan() {
		if key := Text(item, "key"); strings.HasPrefix(key, "leasehold/session/") {
			keys = append(keys, key)
		}
	}
	return keys
}

// ErrorOf returns the error of a call that returns a value and an error.
func ErrorOf[T any](_ T, err error) error { return err }
