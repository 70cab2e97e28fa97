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
	"sync"
	"time"

	"github.com/aws/smithy-go/middleware"
)

// Every random number in a run depends on the seed, and never on an order that Go's scheduler could
// change. The section "Why a seed can be replayed" in doc.go lists the rules for this.

// drawn returns a source of random numbers. The numbers depend only on the seed and on the
// other arguments, which describe the purpose of the numbers.
func drawn(seed uint64, what ...any) *rand.Rand {
	h := fnv.New64a()
	_, _ = fmt.Fprintln(h, what...)
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// upTo returns a random duration below d. The unit of the result is a nanosecond, so two
// results are unlikely to be equal.
func upTo(r interface{ Int64N(int64) int64 }, d time.Duration) time.Duration {
	return time.Duration(r.Int64N(int64(d)))
}

// worker is one goroutine of a simulated process. It has its own source of random numbers.
type worker struct {
	*rand.Rand
	name     string
	troubles int // number of faults that the worker has tried to cause
}

// trouble counts a fault that this worker is about to cause, and returns a text that identifies
// the fault in every run of the seed.
func (r *worker) trouble() string {
	r.troubles++
	return fmt.Sprintf("by worker %s, number %d", r.name, r.troubles)
}

func newWorker(seed uint64, id ...any) *worker {
	return &worker{Rand: drawn(seed, append([]any{"worker"}, id...)...), name: fmt.Sprint(id...)}
}

type workerKey struct{}

// ctx returns a context that contains the worker's name. The network reads this name to find
// the worker for which a request is sent.
func (r *worker) ctx() context.Context { return onBehalf(context.Background(), "worker "+r.name) }

func onBehalf(ctx context.Context, who string) context.Context {
	return context.WithValue(ctx, workerKey{}, who)
}

// chance returns a random number for the client. It depends on the functions on the stack and on
// the worker, not on the order of the workers' calls. Two goroutines get different numbers at the
// same instant, so that their timers do not fire together.
func (c *process) chance() float64 {
	c.yield()
	why := callers()
	// Package renewals calls chance while it holds a mutex. So its goroutines never call chance at
	// the same time, and do not need the sleep of staggerWakeups. They must not sleep either,
	// because no goroutine may sleep while it holds a mutex.
	if !strings.Contains(why, "/internal/renewals.") {
		why += c.staggerWakeups(why)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); !now.Equal(c.drewAt) {
		c.drewAt, c.draws = now, map[string]int{}
	}
	c.draws[why]++
	return drawn(c.seed, "chance", c.id, c.drewAt, why, c.draws[why]).Float64()
}

// staggerWakeups sleeps for a random time, so that goroutines woken by one event continue at
// different instants (doc.go has an example). It returns the worker for which this goroutine works.
func (c *process) staggerWakeups(why string) (who string) {
	self, parent := goroutine()
	c.mu.Lock()
	who = cmp.Or(c.workers[self], c.workers[parent])
	c.workers[self] = who
	// Several goroutines may work for one worker. For example, one call may send several releases
	// after its deadline, each on a goroutine of its own. The last request of a goroutine
	// distinguishes it from the others.
	if asked := c.lastAsked[self].before(time.Now()); asked != "" {
		who += ", which has asked for " + asked
	}
	c.mu.Unlock()
	if who != "" { // a goroutine that works for no worker competes with no other goroutine
		time.Sleep(upTo(drawn(c.seed, "woken", c.id, why, who, time.Now()), time.Millisecond))
		c.yield()
	}
	return who
}

// asksFor records a request as the last request of its goroutine and of that goroutine's parent.
// Both are named in ctx, the context of the request.
func (c *process) asksFor(ctx context.Context, asks string) {
	who, _ := ctx.Value(goroutinesKey{}).([2]string)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range who {
		c.lastAsked[id] = c.lastAsked[id].and(asks, time.Now())
	}
}

type goroutinesKey struct{}

// namesGoroutine adds the ids of the sending goroutine and of its parent to each request's context.
// It does so before the SDK's work, because the stack is still short there. Printing the deep stack
// inside the SDK would take a third of the simulation's time.
func namesGoroutine(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("names the goroutine", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
		self, parent := goroutine()
		return next.HandleInitialize(context.WithValue(ctx, goroutinesKey{}, [2]string{self, parent}), in)
	}), middleware.Before)
}

// asking contains the last requests of a goroutine and of the goroutines that it started. A random
// number depends only on requests at earlier instants (see asking.before), because the scheduler
// decides whether a request at the same instant comes before the random number.
type asking struct {
	// latest is the newest request. Among requests sent at the same instant, the alphabetically
	// greatest counts as the newest.
	latest  string
	at      time.Time // time at which latest was sent
	earlier string    // last request that was sent before that time
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

// goesAbout records that this goroutine calls the client for the given worker. The goroutines
// that this goroutine starts work for the same worker.
func (c *process) goesAbout(who string) {
	self, _ := goroutine()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.workers[self] = who
}

// stacks contains reusable buffers: allocating one takes longer than printing a stack into it.
var stacks = sync.Pool{New: func() any { return new([1 << 16]byte) }}

var goroutineNumber = regexp.MustCompile(`goroutine \d+`)

// goroutine returns the id of the current goroutine and the id of the goroutine that started it.
func goroutine() (self, parent string) {
	stack := stacks.Get().(*[1 << 16]byte)
	defer stacks.Put(stack)
	found := goroutineNumber.FindAll(stack[:runtime.Stack(stack[:], false)], -1)
	return string(found[0]), string(found[len(found)-1])
}

// callers returns the names of the functions on the stack of the current goroutine.
func callers() string {
	var names strings.Builder
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for frame, more := frames.Next(); more; frame, more = frames.Next() {
		names.WriteString(frame.Function + "\n")
	}
	return names.String()
}

// yield sometimes lets other goroutines run first, as a busy machine would. It does so only if
// world.yields is set. Whether it does so in a given call does not depend on the seed.
func (c *process) yield() {
	for c.plan.yields && rand.IntN(2) == 0 {
		runtime.Gosched()
	}
}

// Time is divided into cycles. Each cycle has one slot for each process. The messages to and
// from a process arrive in its slots, so two processes never act at the same instant.
const (
	slot  = 100 * time.Nanosecond
	cycle = (lastClient + 1) * slot
)

// The method "after" sleeps for about d. It returns within one of the time slots that are reserved
// for this process.
func (c *process) after(d time.Duration, r *rand.Rand) {
	until := time.Now().Add(d).Truncate(cycle).Add(cycle + time.Duration(c.id)*slot + upTo(r, slot))
	time.Sleep(time.Until(until))
}
