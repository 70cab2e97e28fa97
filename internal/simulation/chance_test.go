package simulation

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// Every decision in a run comes from its seed, and never depends on an order that Go's
// scheduler could change. The fate of a request is drawn for the goroutine on whose behalf
// it is sent, for its operation and keys, and for how many such requests went before. Each
// message arrives at an instant of its own: no two processes ever reach the table at once.

// drawn returns the chance of one thing in a run.
func drawn(seed uint64, what ...any) *rand.Rand {
	h := fnv.New64a()
	_, _ = fmt.Fprintln(h, what...)
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// upTo draws a time that no other is likely to equal.
func upTo(r interface{ Int64N(int64) int64 }, d time.Duration) time.Duration {
	return time.Duration(r.Int64N(int64(d)))
}

// worker is one goroutine of a process, with chances of its own.
type worker struct {
	*rand.Rand
	name     string
	troubles int
}

// trouble returns the next fault of the worker's process.
func (r *worker) trouble() string {
	r.troubles++
	return fmt.Sprintf("by worker %s, number %d", r.name, r.troubles)
}

func newWorker(seed uint64, id ...any) *worker {
	return &worker{Rand: drawn(seed, append([]any{"worker"}, id...)...), name: fmt.Sprint(id...)}
}

type workerKey struct{}

// ctx lets the network tell whose request it has.
func (r *worker) ctx() context.Context { return onBehalf(context.Background(), "worker "+r.name) }

func onBehalf(ctx context.Context, who string) context.Context {
	return context.WithValue(ctx, workerKey{}, who)
}

// chance draws for the client. Goroutines that draw at one instant draw different numbers:
// two timers that fire at the same instant would run in an order that no seed fixes. So that
// their order does not matter, each draws by its purpose and its worker.
func (c *process) chance() float64 {
	c.yield()
	why := callers()
	if !strings.Contains(why, "/internal/renewals.") { // renewals draw under a mutex, and meet no other goroutine
		why += c.oneAfterTheOther(why)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); !now.Equal(c.drewAt) {
		c.drewAt, c.draws = now, map[string]int{}
	}
	c.draws[why]++
	return drawn(c.seed, "chance", c.id, c.drewAt, why, c.draws[why]).Float64()
}

// oneAfterTheOther lets goroutines that one event has woken continue at instants of their
// own, as when the turns of several keys are passed: a call draws before it checks its
// turns, so the order in which the scheduler runs them does not matter. It returns the
// worker whose call this goroutine works for.
func (c *process) oneAfterTheOther(why string) (who string) {
	self, parent := goroutine()
	c.mu.Lock()
	who = cmp.Or(c.workers[self], c.workers[parent])
	c.workers[self] = who
	if asked := c.lastAsked[self].before(time.Now()); asked != "" { // for example several releases of one call, whose time is over at one instant
		who += ", which has asked for " + asked
	}
	c.mu.Unlock()
	if who != "" { // others meet nobody
		time.Sleep(upTo(drawn(c.seed, "woken", c.id, why, who, time.Now()), time.Millisecond))
		c.yield()
	}
	return who
}

// asksFor notes what this goroutine asks for, or asks for the one that has started it.
func (c *process) asksFor(asks string) {
	self, parent := goroutine()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, who := range []string{self, parent} {
		c.lastAsked[who] = c.lastAsked[who].and(asks, time.Now())
	}
}

// asking contains the last requests of a goroutine. The goroutines that it has started may
// send at the instant at which it draws a chance, and at the same instant as each other:
// the scheduler orders them. So a chance depends on the requests of earlier instants.
type asking struct {
	latest  string // at the instant at: the greatest, if there are several
	at      time.Time
	earlier string // the latest before that instant
}

func (a asking) before(now time.Time) string {
	if a.at.Equal(now) {
		return a.earlier
	}
	return a.latest
}

func (a asking) and(asks string, now time.Time) asking {
	if a.at.Equal(now) {
		return asking{max(a.latest, asks), now, a.earlier}
	}
	return asking{asks, now, a.latest}
}

// goesAbout records on whose behalf this goroutine, and its children, call the client.
func (c *process) goesAbout(who string) {
	self, _ := goroutine()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.workers[self] = who
}

var goroutineNumber = regexp.MustCompile(`goroutine \d+`)

// goroutine names the goroutine that asks, and the one that has started it.
func goroutine() (self, parent string) {
	stack := make([]byte, 1<<16)
	found := goroutineNumber.FindAll(stack[:runtime.Stack(stack, false)], -1)
	return string(found[0]), string(found[len(found)-1])
}

// callers names the functions of the goroutine that asks for a chance.
func callers() string {
	var names strings.Builder
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for frame, more := frames.Next(); more; frame, more = frames.Next() {
		names.WriteString(frame.Function + "\n")
	}
	return names.String()
}

// yield lets other goroutines go first now and then, as a busy machine does: in a world
// that yields, where no chance comes from the seed.
func (c *process) yield() {
	for c.plan.yields && rand.IntN(2) == 0 {
		runtime.Gosched()
	}
}

// Each process has instants of its own, a slot in every cycle.
const (
	slot  = 100 * time.Nanosecond
	cycle = (lastClient + 1) * slot
)

// after sleeps for about d, until an instant that is this process's own.
func (c *process) after(d time.Duration, r *rand.Rand) {
	until := time.Now().Add(d).Truncate(cycle).Add(cycle + time.Duration(c.id)*slot + upTo(r, slot))
	time.Sleep(time.Until(until))
}
