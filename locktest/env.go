// Package locktest tests code that uses leasehold, with no AWS and, inside
// testing/synctest, with no waiting.
//
// An Env is a DynamoDB in this process, and clients that think themselves
// processes of their own. The clients are real, and so are the SDK and the
// requests; only the network and DynamoDB are not:
//
//	func TestNobodyClosesAMonthThatIsBeingClosed(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			env := locktest.New(t)
//			locks := env.Client(leasehold.Config{})
//			env.Hold("close/2026-11")
//			...
//		})
//	}
//
// Use it in a bubble of testing/synctest, made in the bubble by New: leases run
// out at once then, if nothing else is to be done. Outside a bubble all is the
// same and takes its time: a holder that died blocks its key for a lease.
//
// Methods may be called by several goroutines. Those that can fail do so by
// testing.TB.Fatalf, for which they belong on the goroutine of the test.
package locktest

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/machine"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

// tableName is the lock table's name.
const tableName = "locks"

// Env is a DynamoDB of one test, with a lock table.
type Env struct {
	t      testing.TB
	engine *localdynamo.Engine
	db     *dynamodb.Client
	began  time.Time
	log    *output

	mu        sync.Mutex    // guards what follows; never held across I/O
	layout    layout.Layout // of the lock table; nil: nobody relies on one yet
	processes []*process
	cut       bool // everyone is disconnected, later clients as well
	ended     bool
}

// New returns a fresh Env whose table "locks" exists. Everything it made is
// closed when the test ends; a lock still held then is an error of the test,
// unless it is the Env's own (Hold, Steal) or of a client that is disconnected
// at that time.
func New(t testing.TB) *Env {
	t.Helper()
	e := &Env{t: t, engine: localdynamo.New(), began: time.Now(), log: &output{w: t.Output()}}
	e.db = e.engine.Client()
	t.Cleanup(e.end)
	e.createTable(layout.Native{})
	return e
}

// DB returns an SDK client, for the tables of the code under test. It is never
// disconnected, so that a test can look at what there is. Locks of clients made
// with it by leasehold.New are not the Env's concern.
func (e *Env) DB() *dynamodb.Client { return e.db }

// Client returns a client as a process of its own would have. Table is filled
// in, whatever it was. Owner is by default process-1, process-2 and so on, and
// Logger the test's log, for warnings.
//
// The Layout of the first client is that of the table, of Hold and Steal, and of
// later clients that name none; another one is an error. Both of the client's clocks follow package
// time, so that in a bubble no lease runs out by how long the test really takes.
func (e *Env) Client(cfg leasehold.Config) *leasehold.Client {
	e.t.Helper()
	cfg.Layout = e.settle(cfg.Layout)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(e.log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	}
	p := e.newProcess(cfg, "process", false)
	e.follow(p)
	return p.client
}

// settle makes sure that the table is of layout l, nil for that which it has.
func (e *Env) settle(l layout.Layout) layout.Layout {
	e.t.Helper()
	e.mu.Lock()
	has := e.layout
	l = cmp.Or(l, has, layout.Layout(layout.Native{}))
	e.layout = cmp.Or(has, l)
	e.mu.Unlock()
	switch {
	case has != nil && has != l:
		e.t.Fatalf("locktest: the lock table is of layout %#v, as the first client or lock would have it, and not of %#v: give the first client the Layout of all",
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

// newProcess returns a client with a network of its own, which is up. others:
// it is not of the code under test.
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
		Edit:   func(m *machine.Machine) { m.Now = machine.BootedAt(e.began) },
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

// end closes everything, and finds the locks that the code under test has left.
func (e *Env) end() {
	e.t.Helper()
	e.log.stop() // what closing would log is said here, if at all
	e.mu.Lock()
	e.ended = true
	var tested, others []*process
	for _, p := range e.processes {
		switch {
		case p.client == nil: // it was refused
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
	// The others last: what they hold is not for waiters that were left behind.
	closeAll(e.t.Context(), tested)
	closeAll(e.t.Context(), others)
	_ = e.engine.Close() // it is in memory
}

// report names each key that a client still holds.
func (e *Env) report(c *leasehold.Client) {
	e.t.Helper()
	seen := map[leasehold.Key]bool{}
	for _, lock := range c.Held() {
		// One that is being lost is in the list for a moment yet.
		if !seen[lock.Key()] && lock.Err() == nil {
			seen[lock.Key()] = true
			e.t.Errorf("locktest: %v is still held by %s when the test ends: release it (Client.Do does so by itself), close its client, or disconnect that if its process is to have died",
				lock.Key(), lock.Record().Owner)
		}
	}
}

// closeAll closes clients. The test's context has ended by then, which leaves
// each its ReleaseGrace.
func closeAll(ctx context.Context, processes []*process) {
	var wg sync.WaitGroup
	for _, p := range processes {
		wg.Go(func() { _ = p.client.Close(ctx) }) // what was to be said of it has been said
	}
	wg.Wait()
}
