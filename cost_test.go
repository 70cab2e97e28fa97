package leasehold_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
)

// costs are what an operation costs on the wire.
type costs struct {
	requests int
	units
}

// priced is an operation whose costs docs/cost.md has.
type priced struct {
	name string
	what func(w *world, p *process) // the operation alone, after what prepares it
}

// process is a client on a wire that is metered from a certain point on.
type process struct {
	*leasehold.Client
	wire   *wire
	before func() // ends the preparation: what follows is measured
}

func (w *world) process(cfg leasehold.Config) *process {
	c, wire := w.client(cfg)
	wire.meter = &meter{}
	return &process{Client: c, wire: wire, before: func() { synctest.Wait(); wire.sent(); wire.meter.reset() }}
}

// The operations, in the order of the table.
var operations = []priced{
	{"`Acquire` of a free key", func(w *world, p *process) { p.before(); w.acquire(p.Client, "job") }},
	{"`Release`", func(w *world, p *process) { l := w.acquire(p.Client, "job"); p.before(); w.release(l) }},
	{"a renewal", func(w *world, p *process) {
		l := w.acquire(p.Client, "job", leasehold.WithoutRenewal())
		p.before()
		_ = l.Renew(w.t.Context())
	}},
	{"handing over to the next goroutine of the process", func(w *world, p *process) {
		l := w.acquire(p.Client, "job")
		next := make(chan *leasehold.Lock)
		go func() { next <- w.acquire(p.Client, "job") }()
		p.before()
		w.release(l)
		<-next
	}},
	{"`TryAcquire` of a key that another process holds", func(w *world, p *process) {
		w.acquire(w.process(config()).Client, "job")
		p.before()
		_, _ = p.TryAcquire(w.t.Context(), "job")
	}},
	{"one look of a process that waits", func(w *world, p *process) {
		w.acquire(w.process(config()).Client, "job")
		p.before()
		_, _ = p.Get(w.t.Context(), "job") // the same request
	}},
	{"taking over a dead holder's lock that was watched", func(w *world, p *process) {
		other := w.process(config())
		w.acquire(other.Client, "job")
		other.wire.setFault(cut)
		_, _ = p.TryAcquire(w.t.Context(), "job")
		elapse(20 * time.Second)
		p.before()
		w.acquire(p.Client, "job")
	}},
	{"`Detach`", func(w *world, p *process) { l := w.acquire(p.Client, "job"); p.before(); _, _ = l.Detach() }},
	{"`Resume`", func(w *world, p *process) {
		g, _ := w.acquire(p.Client, "job").Detach()
		p.before()
		_, _ = p.Resume(w.t.Context(), g)
	}},
	{"`Get`", func(w *world, p *process) { w.acquire(p.Client, "job"); p.before(); _, _ = p.Get(w.t.Context(), "job") }},
	{"`List` of 10 records", func(w *world, p *process) {
		for i := range 10 {
			w.acquire(p.Client, strconv.Itoa(i))
		}
		p.before()
		for _, err := range p.List(w.t.Context()) {
			if err != nil {
				w.t.Error(err)
			}
		}
	}},
	{"`Break`", func(w *world, p *process) {
		l := w.acquire(p.Client, "job")
		p.before()
		_ = p.Break(w.t.Context(), l.Record())
	}},
	{"`Commit` of one write", func(w *world, p *process) {
		l := w.acquire(p.Client, "job")
		p.before()
		_ = l.Commit(w.t.Context(), writes(note("a", "1")))
	}},
	{"`CommitAndRelease` of one write", func(w *world, p *process) {
		l := w.acquire(p.Client, "job")
		p.before()
		_ = l.CommitAndRelease(w.t.Context(), writes(note("a", "1")))
	}},
	{"`Read` of one item", func(w *world, p *process) {
		l := w.acquire(p.Client, "job")
		p.before()
		_, _ = l.Read(w.t.Context(), []types.TransactGetItem{get("a")})
	}},
	{"`AcquireAll` of two free keys", func(w *world, p *process) { p.before(); w.acquireAll(p.Client, leasehold.Keys("x", "y")) }},
	{"`Group.Commit` of one write under two locks", func(w *world, p *process) {
		g := w.acquireAll(p.Client, leasehold.Keys("x", "y"))
		p.before()
		_ = g.Commit(w.t.Context(), writes(note("a", "1")))
	}},
	{"`Group.Release` of two locks", func(w *world, p *process) {
		g := w.acquireAll(p.Client, leasehold.Keys("x", "y"))
		p.before()
		_ = g.Release(w.t.Context())
	}},
}

// Those of a process whose locks share one lease.
var sharedOperations = []priced{
	{"the first `Acquire`", func(w *world, p *process) { p.before(); w.acquire(p.Client, "job") }},
	{"a later `Acquire`", func(w *world, p *process) {
		w.acquire(p.Client, "first")
		p.before()
		w.acquire(p.Client, "job")
	}},
	{"a renewal of all locks", func(w *world, p *process) {
		for i := range 10 {
			w.acquire(p.Client, strconv.Itoa(i))
		}
		elapse(5 * time.Second) // the first comes early
		p.before()
		elapse(5 * time.Second)
	}},
	{"`Close` with 10 locks held", func(w *world, p *process) {
		for i := range 10 {
			w.acquire(p.Client, strconv.Itoa(i))
		}
		p.before()
		_ = p.Close(w.t.Context())
	}},
}

// measure counts what an operation sends and consumes. That of a refused write
// its reply does not say: DynamoDB charges it like one that landed.
func measure(t *testing.T, cfg leasehold.Config, op priced) costs {
	var c costs
	inBubble(t, func(t *testing.T, w *world) {
		p := w.work().process(cfg)
		op.what(w, p)
		c.requests, c.units = len(p.wire.sent()), p.wire.meter.reset()
		_ = p.Close(context.Background())
	})
	return c
}

// On-demand prices of us-east-1 since November 2024, in dollars a million.
const (
	writePrice = 0.625
	readPrice  = 0.125
	month      = 30 * 24 * time.Hour
)

// fleet is a month of somebody's locks.
type fleet struct {
	name string
	uses map[string]float64 // how many of which operation
}

func perMonth(every time.Duration) float64 { return float64(month / every) }

var fleets = []fleet{
	{"a cron job each minute on 20 hosts", map[string]float64{
		"`Acquire` of a free key": perMonth(time.Minute), "`Release`": perMonth(time.Minute),
		"`TryAcquire` of a key that another process holds": 19 * perMonth(time.Minute),
	}},
	{"20 sections a second, each with one write that commits and releases", map[string]float64{
		"`Acquire` of a free key": 20 * perMonth(time.Second), "`CommitAndRelease` of one write": 20 * perMonth(time.Second),
	}},
	{"50 processes that hold 40 locks each, all the time", map[string]float64{
		"a renewal": 2000 * perMonth(5*time.Second),
	}},
	{"the same with shared leases", map[string]float64{
		"a renewal of all locks": 50 * perMonth(5*time.Second), "a renewal": 2000 * perMonth(20*time.Minute),
	}},
}

func TestTheCostsInTheDocumentsAreMeasured(t *testing.T) {
	b, err := os.ReadFile("docs/cost.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(b)
	want := func(row string) {
		t.Helper()
		if !strings.Contains(doc, row+"\n") {
			t.Errorf("docs/cost.md lacks this row:\n%s", row)
		}
	}
	measured := map[string]costs{}
	add := func(cfg leasehold.Config, ops []priced) {
		for _, op := range ops {
			c := measure(t, cfg, op)
			measured[op.name] = c
			want(fmt.Sprintf("| %s | %d | %g | %g |", op.name, c.requests, c.write, c.read))
		}
	}
	add(config(), operations)
	add(sharedConfig(), sharedOperations)
	for _, f := range fleets {
		var used units
		for name, n := range f.uses {
			c, ok := measured[name]
			if !ok {
				t.Fatalf("no operation %s", name)
			}
			used.write += n * c.write
			used.read += n * c.read
		}
		want(fmt.Sprintf("| %s | %.1f | %.1f | $%.2f |", f.name, used.write/1e6, used.read/1e6,
			used.write/1e6*writePrice+used.read/1e6*readPrice))
	}
}
