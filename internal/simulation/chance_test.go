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
// scheduler could change. The fate of a request depends on the goroutine on whose behalf it
// is sent, on its operation and keys, and on how many such requests came before. Two
// processes never reach the table at the same instant, because each message arrives at an
// instant of its own.

// drawn returns a source of random numbers for one purpose in the run of a seed.
func drawn(seed uint64, what ...any) *rand.Rand {
	h := fnv.New64a()
	_, _ = fmt.Fprintln(h, what...)
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// upTo returns a random time that is unlikely to be drawn twice.
func upTo(r interface{ Int64N(int64) int64 }, d time.Duration) time.Duration {
	return time.Duration(r.Int64N(int64(d)))
}

// worker is one goroutine of a process, with random numbers of its own.
type worker struct {
	*rand.Rand
	name     string
	troubles int
}

// trouble returns a description of the next fault that the worker causes in its process.
func (r *worker) trouble() string {
	r.troubles++
	return fmt.Sprintf("by worker %s, number %d", r.name, r.troubles)
}

func newWorker(seed uint64, id ...any) *worker {
	return &worker{Rand: drawn(seed, append([]any{"worker"}, id...)...), name: fmt.Sprint(id...)}
}

type workerKey struct{}

// ctx returns a context that tells the network which worker sends a request.
func (r *worker) ctx() context.Context { return onBehalf(context.Background(), "worker "+r.name) }

func onBehalf(ctx context.Context, who string) context.Context {
	return context.WithValue(ctx, workerKey{}, who)
}

// chance returns a random number for the client. Goroutines that ask at the same instant
// must get different numbers. Otherwise their timers would fire at the same instant, and
// run in an order that no seed determines. The number depends on its purpose and on the
// worker, and not on the order of the goroutines.
func (c *process) chance() float64 {
	c.yield()
	why := callers()
	if !strings.Contains(why, "/internal/renewals.") { // renewals ask under a mutex, so they never compete with another goroutine
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

// oneAfterTheOther makes goroutines that one event has woken continue at different
// instants. For example, one event may pass on the turns of several keys. Each call asks
// for a random number, and sleeps here, before it checks its turns. So the order in which
// the scheduler runs the calls does not matter. The function returns the worker on whose
// behalf this goroutine works.
func (c *process) oneAfterTheOther(why string) (who string) {
	self, parent := goroutine()
	c.mu.Lock()
	who = cmp.Or(c.workers[self], c.workers[parent])
	c.workers[self] = who
	if asked := c.lastAsked[self].before(time.Now()); asked != "" { // the last request distinguishes goroutines of one worker, for example when one call sends several releases after its deadline
		who += ", which has asked for " + asked
	}
	c.mu.Unlock()
	if who != "" { // a goroutine without a worker competes with no other
		time.Sleep(upTo(drawn(c.seed, "woken", c.id, why, who, time.Now()), time.Millisecond))
		c.yield()
	}
	return who
}

// asksFor records a request as the last one of this goroutine, and of the goroutine that
// started it.
func (c *process) asksFor(asks string) {
	self, parent := goroutine()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, who := range []string{self, parent} {
		c.lastAsked[who] = c.lastAsked[who].and(asks, time.Now())
	}
}

// asking contains the last requests of a goroutine and of the goroutines that it has
// started. When a goroutine asks for a random number, those goroutines may send requests at
// the same instant, in an order that the scheduler decides. So the random number depends
// only on requests at earlier instants.
type asking struct {
	latest  string // request at the time in field at; if there are several, the one with the greatest text
	at      time.Time
	earlier string // latest request before the time in field at
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

// goesAbout records the worker on whose behalf this goroutine and its children call the
// client.
func (c *process) goesAbout(who string) {
	self, _ := goroutine()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.workers[self] = who
}

var goroutineNumber = regexp.MustCompile(`goroutine \d+`)

// goroutine returns the ids of this goroutine, and of the one that started it.
func goroutine() (self, parent string) {
	stack := make([]byte, 1<<16)
	found := goroutineNumber.FindAll(stack[:runtime.Stack(stack, false)], -1)
	return string(found[0]), string(found[len(found)-1])
}

// callers returns the names of the functions on this goroutine's stack.
func callers() string {
	var names strings.Builder
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for frame, more := frames.Next(); more; frame, more = frames.Next() {
		names.WriteString(frame.Function + "\n")
	}
	return names.String()
}

// yield sometimes lets other goroutines run first, as on a busy machine, if the world has
// yields set. Its decisions do not depend on the seed.
func (c *process) yield() {
	for c.plan.yields && rand.IntN(2) == 0 {
		runtime.Gosched()
	}
}

// Each cycle has one slot for each process. A message arrives in a slot of its process, so two
// processes never act at the same instant.
const (
	slot  = 100 * time.Nanosecond
	cycle = (lastClient + 1) * slot
)

// after sleeps for about d, until an instant in a slot of this process.
func (c *process) after(d time.Duration, r *rand.Rand) {
	until := time.Now().Add(d).Truncate(cycle).Add(cycle + time.Duration(c.id)*slot + upTo(r, slot))
	time.Sleep(time.Until(until))
}
