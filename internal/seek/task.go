package seek

import (
	"context"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
)

// task acquires for one call, on a goroutine of its own. So the call can return at once
// when its context ends, and the task undoes what it has sent.
type task struct {
	values context.Context // the caller's values, without its end, for requests that continue after it has left
	ctx    context.Context // ends when nobody waits
	cancel context.CancelFunc
	done   chan struct{} // closed when there is a result

	requests int // number sent so far
	trouble  Trouble
	watched  time.Duration // monotonic: when the last holder that looks dead is dead; see Want.ObservesDead

	mu       sync.Mutex // guards the next two
	givenUp  bool
	finished bool
}

func newTask(ctx context.Context) *task {
	t := &task{values: context.WithoutCancel(ctx), done: make(chan struct{})}
	t.ctx, t.cancel = context.WithCancel(t.values)
	return t
}

// isLate reports whether a call with NoWait that began then has waited long enough for
// answers. The time for which it has watched does not count.
func (t *task) isLate(began, now decide.Instant) bool {
	return durations.Less(now.Mono, max(began.Mono, t.watched)) > TryFor
}

// giveUp ends the task because its caller has left. It returns false if the task has
// finished already, and its result counts.
func (t *task) giveUp() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.abandon()
}

// abandon is giveUp. t.mu is held.
func (t *task) abandon() bool {
	if t.finished {
		return false
	}
	t.givenUp = true
	t.cancel()
	return true
}

// finish ends the task. It reports whether its caller has left.
func (t *task) finish() (givenUp bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.finished = true
	return t.givenUp
}
