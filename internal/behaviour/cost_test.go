package behaviour_test

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
	"github.com/leasehold-go/leasehold/internal/lab"
)

// costs contains the number of requests of an operation, and the capacity units that these requests
// consume.
type costs struct {
	requests int
	lab.Units
}

// priced is an operation whose costs are stated in a table of docs/timing.md.
type priced struct {
	name string
	what func(w *lab.World, p *process) // prepares the operation, calls p.before, and runs the operation
}

// process is a client whose requests are counted. The function "before" sets the count to zero.
type process struct {
	*leasehold.Client
	wire   *lab.Wire
	before func() // called after the preparation of an operation
}

func newProcess(w *lab.World, cfg leasehold.Config, on ...lab.Edit) *process {
	c, wire := w.Client(cfg, on...)
	wire.Meter = &lab.Meter{}
	return &process{Client: c, wire: wire, before: func() { synctest.Wait(); wire.Sent(); wire.Meter.Reset() }}
}

// operations contains the operations in the order of the table in docs/timing.md.
var operations = []priced{
	{"`Acquire` of a free key", func(w *lab.World, p *process) { p.before(); w.Acquire(p.Client, "job") }},
	{"`Release`", func(w *lab.World, p *process) { l := w.Acquire(p.Client, "job"); p.before(); w.Release(l) }},
	{"a renewal", func(w *lab.World, p *process) {
		l := w.Acquire(p.Client, "job", leasehold.WithoutRenewal())
		p.before()
		_ = l.Renew(w.T.Context())
	}},
	{"handing over to the next goroutine of the process", func(w *lab.World, p *process) {
		l := w.Acquire(p.Client, "job")
		next := begin(func() *leasehold.Lock { return w.Acquire(p.Client, "job") })
		p.before()
		w.Release(l)
		<-next
	}},
	{"handing over to the head of the queue", func(w *lab.World, p *process) {
		l := w.Acquire(p.Client, "job")
		next := w.Queue(newProcess(w, lab.Config()).Client, "job")
		lab.Elapse(time.Second)
		_ = l.Renew(w.T.Context()) // the reply to the renewal shows the queue to the holder
		p.before()
		w.Release(l)
		<-next
	}},
	{"`TryAcquire` of a key that another process holds", func(w *lab.World, p *process) {
		w.Acquire(newProcess(w, lab.Config()).Client, "job")
		p.before()
		_, _ = p.TryAcquire(w.T.Context(), "job")
	}},
	{"a read of a waiting process", func(w *lab.World, p *process) {
		w.Acquire(newProcess(w, lab.Config()).Client, "job")
		p.before()
		_, _ = p.Get(w.T.Context(), "job") // Get sends the request with which a waiter polls
	}},
	{"taking over a dead holder's lock that was watched", func(w *lab.World, p *process) {
		other := newProcess(w, lab.Config())
		w.Acquire(other.Client, "job")
		other.wire.SetFault(lab.Cut)
		_, _ = p.TryAcquire(w.T.Context(), "job")
		lab.Elapse(20 * time.Second)
		p.before()
		w.Acquire(p.Client, "job")
	}},
	{"`Detach`", func(w *lab.World, p *process) { l := w.Acquire(p.Client, "job"); p.before(); _, _ = l.Detach() }},
	{"`Resume`", func(w *lab.World, p *process) {
		g, _ := w.Acquire(p.Client, "job").Detach()
		p.before()
		_, _ = p.Resume(w.T.Context(), g)
	}},
	{"`Get`", func(w *lab.World, p *process) {
		w.Acquire(p.Client, "job")
		p.before()
		_, _ = p.Get(w.T.Context(), "job")
	}},
	{"`List` of 10 records", func(w *lab.World, p *process) {
		for i := range 10 {
			w.Acquire(p.Client, strconv.Itoa(i))
		}
		p.before()
		for _, err := range p.List(w.T.Context(), leasehold.ListOptions{}) {
			lab.WantErr(w.T, "listed", err, nil)
		}
	}},
	{"`Break`", func(w *lab.World, p *process) {
		l := w.Acquire(p.Client, "job")
		p.before()
		_ = p.Break(w.T.Context(), l.Record(), leasehold.BreakOptions{})
	}},
	{"`Commit` of one write", func(w *lab.World, p *process) {
		l := w.Acquire(p.Client, "job")
		p.before()
		_ = l.Commit(w.T.Context(), lab.Writes(lab.Note("a", "1")))
	}},
	{"`CommitAndRelease` of one write", func(w *lab.World, p *process) {
		l := w.Acquire(p.Client, "job")
		p.before()
		_ = l.CommitAndRelease(w.T.Context(), lab.Writes(lab.Note("a", "1")))
	}},
	{"`Read` of one item", func(w *lab.World, p *process) {
		l := w.Acquire(p.Client, "job")
		p.before()
		_, _ = l.Read(w.T.Context(), []types.TransactGetItem{lab.Get("a")})
	}},
	{"`AcquireAll` of two free keys", func(w *lab.World, p *process) { p.before(); w.AcquireAll(p.Client, leasehold.Keys("x", "y")) }},
	{"`Group.Commit` of one write under two locks", func(w *lab.World, p *process) {
		g := w.AcquireAll(p.Client, leasehold.Keys("x", "y"))
		p.before()
		_ = g.Commit(w.T.Context(), lab.Writes(lab.Note("a", "1")))
	}},
	{"`Group.Release` of two locks", func(w *lab.World, p *process) {
		g := w.AcquireAll(p.Client, leasehold.Keys("x", "y"))
		p.before()
		_ = g.Release(w.T.Context())
	}},
}

// sharedOperations contains the operations of a client with Config.SharedLease.
var sharedOperations = []priced{
	{"the first `Acquire`", func(w *lab.World, p *process) { p.before(); w.Acquire(p.Client, "job") }},
	{"a later `Acquire`", func(w *lab.World, p *process) {
		w.Acquire(p.Client, "first")
		p.before()
		w.Acquire(p.Client, "job")
	}},
	{"a renewal of all locks", func(w *lab.World, p *process) {
		for i := range 10 {
			w.Acquire(p.Client, strconv.Itoa(i))
		}
		lab.Elapse(5 * time.Second) // the first renewal, which comes early, is not measured
		p.before()
		lab.Elapse(5 * time.Second)
	}},
	{"`Break` of another process's lock", func(w *lab.World, p *process) {
		other := newProcess(w, lab.SharedConfig())
		l := w.Acquire(other.Client, "job")
		p.before()
		_ = p.Break(w.T.Context(), l.Record(), leasehold.BreakOptions{})
	}},
	{"two renewals of all locks after one lock was broken", func(w *lab.World, p *process) {
		l := w.Acquire(p.Client, "job")
		w.Acquire(p.Client, "other")
		lab.Elapse(5 * time.Second)
		_ = newProcess(w, lab.Config()).Break(w.T.Context(), l.Record(), leasehold.BreakOptions{})
		p.before()
		lab.Elapse(10 * time.Second)
	}},
	{"`Close` with 10 locks held", func(w *lab.World, p *process) {
		for i := range 10 {
			w.Acquire(p.Client, strconv.Itoa(i))
		}
		p.before()
		_ = p.Close(w.T.Context())
	}},
}

// measure returns the number of requests of an operation, and the capacity units that they consume.
// The reply to a rejected write states no units. For such a write, lab.Meter counts one unit, which
// is right for records of at most 1 KB.
func measure(t *testing.T, cfg leasehold.Config, op priced) costs {
	var c costs
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		p := newProcess(w.Work(), cfg)
		op.what(w, p)
		c.requests, c.Units = len(p.wire.Sent()), p.wire.Meter.Reset()
		_ = p.Close(context.Background())
	})
	return c
}

// On-demand prices of DynamoDB in us-east-1 since November 2024, in dollars per million units.
const (
	writePrice = 0.625
	readPrice  = 0.125
	month      = 30 * 24 * time.Hour
)

// fleet describes how often the processes of one user run each operation in a month.
type fleet struct {
	name string
	uses map[string]float64 // operations in a month, by name
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

func TestDocumentedCostsMatchMeasuredCosts(t *testing.T) {
	b := lab.Must(os.ReadFile("../../docs/timing.md"))(t)
	doc := string(b)
	want := func(row string) {
		t.Helper()
		if !strings.Contains(doc, row+"\n") {
			t.Errorf("docs/timing.md lacks this row:\n%s", row)
		}
	}
	measured := map[string]costs{}
	add := func(cfg leasehold.Config, ops []priced) {
		for _, op := range ops {
			c := measure(t, cfg, op)
			measured[op.name] = c
			want(fmt.Sprintf("| %s | %d | %g | %g |", op.name, c.requests, c.Write, c.Read))
		}
	}
	add(lab.Config(), operations)
	add(lab.SharedConfig(), sharedOperations)
	for _, f := range fleets {
		var used lab.Units
		for name, n := range f.uses {
			c, ok := measured[name]
			if !ok {
				t.Fatalf("no operation %s", name)
			}
			used.Write += n * c.Write
			used.Read += n * c.Read
		}
		want(fmt.Sprintf("| %s | %.1f | %.1f | $%.2f |", f.name, used.Write/1e6, used.Read/1e6,
			used.Write/1e6*writePrice+used.Read/1e6*readPrice))
	}
}
