// Package locktest helps to test code that uses leasehold. Such tests need no AWS account and,
// with testing/synctest, take almost no time.
//
// An Env is a DynamoDB in this process, with clients that behave like separate processes. The
// clients, the SDK and the requests are real. Only the network and DynamoDB are simulated:
//
//	func TestCloseMonthWaitsForOtherProcess(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			env := locktest.New(t)
//			locks := env.Client(leasehold.Config{})
//			env.Hold("close/2026-11")
//			...
//		})
//	}
//
// Call New inside a bubble of testing/synctest. Time is then virtual: leases expire without a
// real wait. Outside a bubble, everything works in the same way, but takes real time. For
// example, a dead holder blocks its key for the length of its lease.
//
// All methods are safe for concurrent use. If a method fails, it calls testing.TB.Fatalf, which
// must run on the test's goroutine.
package locktest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/machine"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

// tableName is the name of the lock table.
const tableName = "locks"

// Env is an in-memory DynamoDB with a lock table, for one test.
type Env struct {
	t      testing.TB
	engine *localdynamo.Engine
	db     *dynamodb.Client
	began  time.Time
	log    *output

	mu        sync.Mutex    // guards the fields below; not held during requests
	layout    layout.Layout // layout of the lock table; nil until the first client is created
	processes []*process
	// Whether all processes are disconnected. Clients that are created later are then
	// disconnected, too.
	cut   bool
	ended bool
}

// New returns an Env with a lock table named "locks". When the test ends, the Env closes all
// clients. The test fails if a connected client of the code under test still holds a lock. Locks
// from Hold and Steal need not be released.
func New(t testing.TB) *Env {
	t.Helper()
	e := &Env{t: t, engine: localdynamo.New(), began: time.Now(), log: &output{w: t.Output()}}
	e.db = e.engine.Client()
	t.Cleanup(e.end)
	e.createTable(layout.Native{})
	return e
}

// DB returns an SDK client for the tables of the code under test. Disconnect does not affect it, so
// a test can always read the tables. If the test passes the client to leasehold.New, the Env does
// not check or close the resulting lock client.
func (e *Env) DB() *dynamodb.Client { return e.db }

// Client returns a lock client that behaves like a separate process. It sets cfg.Table to the
// Env's table. By default, Owner is process-1, process-2 and so on, and Logger writes to the
// test's log.
//
// The Layout of the first client becomes the layout of the table. Hold, Steal, and later clients
// without a Layout use it. If a later client has a different Layout, the test fails. The
// client's monotonic clock and boot clock follow time.Now, which is virtual in a bubble. So a
// test that runs slowly in real time does not make leases expire.
func (e *Env) Client(cfg leasehold.Config) *leasehold.Client {
	e.t.Helper()
	cfg.Layout = e.useLayout(cfg.Layout)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(e.log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	}
	p := e.newProcess(cfg, "process", false)
	e.follow(p)
	return p.client
}

// useLayout sets the layout of the lock table, and returns it. If l is nil, useLayout keeps the
// current layout.
func (e *Env) useLayout(l layout.Layout) layout.Layout {
	e.t.Helper()
	e.mu.Lock()
	has := e.layout
	l = cmp.Or(l, has, layout.Layout(layout.Native{}))
	e.layout = cmp.Or(has, l)
	e.mu.Unlock()
	switch {
	case has != nil && has != l:
		e.t.Fatalf("locktest: the lock table has layout %#v, from the first client or lock, not %#v: set the Layout that all clients use in the first client",
			has, l)
	case has == nil && l != layout.Layout(layout.Native{}):
		if _, err := e.db.DeleteTable(e.t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String(tableName)}); err != nil {
			e.t.Fatalf("locktest: replace the lock table: %v", err)
		}
		e.createTable(l)
	}
	return l
}

func (e *Env) createTable(l layout.Layout) {
	e.t.Helper()
	if err := table.Create(e.t.Context(), e.db, table.Spec{Name: tableName, Layout: l}); err != nil {
		e.t.Fatalf("locktest: %v", err)
	}
}

// newProcess returns a client with its own network. The parameter "others" is true for a client of
// Hold or Steal, and false for a client of the code under test. The parameter "kind" is the first
// part of the client's default owner.
func (e *Env) newProcess(cfg leasehold.Config, kind string, others bool) *process {
	e.t.Helper()
	p := &process{env: e, others: others}
	e.mu.Lock()
	e.processes = append(e.processes, p)
	cfg.Owner = cmp.Or(cfg.Owner, fmt.Sprintf("%s-%d", kind, len(e.processes)))
	e.mu.Unlock()
	cfg.Table = tableName
	db := machine.DB{
		Client: e.engine.Client(func(o *dynamodb.Options) { o.HTTPClient = p }),
		Edit:   p.setClock,
	}
	client, err := leasehold.New(db, cfg)
	if err != nil {
		e.t.Fatalf("locktest: %v", err)
	}
	e.mu.Lock()
	p.client = client
	e.mu.Unlock()
	return p
}

// setClock makes the clocks of m follow time.Now, but p.ahead nanoseconds ahead of it.
func (p *process) setClock(m *machine.Machine) {
	now := machine.BootedAt(p.env.began)
	m.Now = func() decide.Instant {
		at, ahead := now(), time.Duration(p.ahead.Load())
		return decide.Instant{Mono: durations.Sum(at.Mono, ahead), Boot: durations.Sum(at.Boot, ahead)}
	}
}

// end closes all clients, and reports the locks that clients of the code under test still hold.
func (e *Env) end() {
	e.t.Helper()
	// The log messages of closing clients are not needed, because the method "report" finds every lock
	// that is still held.
	e.log.stop()
	e.mu.Lock()
	e.ended = true
	var tested, others []*process
	for _, p := range e.processes {
		switch {
		case p.client == nil: // skipped, because leasehold.New failed for this process
		case p.others:
			others = append(others, p)
		default:
			tested = append(tested, p)
		}
		if p.client != nil && p.down != nil {
			p.dead = true
			close(p.down)
			p.down = nil
		}
	}
	e.mu.Unlock()
	for _, p := range tested {
		if !p.dead {
			e.report(p.client)
		}
	}
	// The clients of Hold and Steal are closed last. If their locks were released first, waiters
	// of the code under test could acquire them.
	closeAll(e.t.Context(), tested)
	closeAll(e.t.Context(), others)
	_ = e.engine.Close() // the error is ignored, because closing an in-memory engine cannot fail
}

// report reports a test error for each key that the client still holds.
func (e *Env) report(c *leasehold.Client) {
	e.t.Helper()
	seen := map[leasehold.Key]bool{}
	for _, lock := range c.Held() {
		// A lock that has just been lost stays in the client's list for a moment.
		if !seen[lock.Key()] && lock.Err() == nil {
			seen[lock.Key()] = true
			e.t.Errorf("locktest: %v is still held by %s at the end of the test: release it (Client.Do does so by itself), close its client, or disconnect the client if its process should have died",
				lock.Key(), lock.Record().Owner)
		}
	}
}

// closeAll closes the clients of processes. ctx is the test's context, which is already
// cancelled. Closing a client with a cancelled context takes at most the client's ReleaseGrace.
func closeAll(ctx context.Context, processes []*process) {
	var wg sync.WaitGroup
	for _, p := range processes {
		wg.Go(func() { _ = p.client.Close(ctx) }) // errors are ignored, because report has already reported the problems
	}
	wg.Wait()
}

// output writes to the test's log until the test ends. After that it discards all text, because
// writing to the log would then panic.
type output struct {
	mu sync.Mutex
	w  io.Writer // nil after the test has ended
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.w == nil {
		return len(b), nil
	}
	return o.w.Write(b)
}

func (o *output) stop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.w = nil
}
