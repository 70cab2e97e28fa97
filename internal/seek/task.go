package seek

import (
	"context"
	"sync"
)

// task acquires for one call, on a goroutine of its own. So the call can return at once
// when its context ends, and the task undoes what it has sent.
type task struct {
	ctx    context.Context // ends when nobody waits; carries the caller's values
	cancel context.CancelFunc
	done   chan struct{} // closed when there is a result

	requests int // sent so far
	trouble  Trouble

	mu       sync.Mutex // guards the next two
	givenUp  bool
	finished bool
}

func newTask(ctx context.Context) *task {
	t := &task{done: make(chan struct{})}
	t.ctx, t.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return t
}

// giveUp tells the task that nobody waits for it any more. False: it has finished
// already, and its result stands.
func (t *task) giveUp() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.finished {
		return false
	}
	t.givenUp = true
	t.cancel()
	return true
}

// finish ends the task. It reports whether nobody waits for its result any more.
func (t *task) finish() (givenUp bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.finished = true
	return t.givenUp
}
