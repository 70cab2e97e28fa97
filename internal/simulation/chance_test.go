package simulation

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// Everything that decides in a run comes from its seed, and from nothing whose
// order the scheduler of Go could change. What becomes of a request is drawn
// for the goroutine on whose behalf it is sent, for what it asks of which keys,
// and for how many such requests went before. Whatever is on its way arrives at an
// instant of its own: no two processes ever reach the table at the same.

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

// trouble names the next thing that befalls the worker's process.
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

// chance is the client's own. Goroutines that draw at one instant draw different
// numbers: two timers that fire at the same would go in an order that no seed fixes.
func (c *process) chance() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Equal(c.drewAt) {
		c.draws++
	} else {
		c.drewAt, c.draws = now, 0
	}
	return drawn(c.seed, "chance", c.id, c.drewAt, c.draws).Float64()
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
