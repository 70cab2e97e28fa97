package leasehold

import (
	"context"
	"sync"
	"time"
)

// placeAtMost is how long one request keeps others from their turn. One that
// hangs is then let be, and another is sent beside it.
const placeAtMost = time.Second

// turns bound how many requests are under way. Those that are sent for the first
// time go before those that are repeated: what hangs or is refused holds up
// nothing else. It is safe for concurrent use.
type turns struct {
	mu          sync.Mutex
	free        int
	first, then []chan struct{} // waiting, in order; closed when it is their turn
}

func newTurns(n int) *turns { return &turns{free: n} }

// take waits for a turn of a request that is sent for the first time, until leave
// is called; false: limit came first.
func (t *turns) take(limit context.Context) (leave func(), ok bool) { return t.wait(limit, &t.first) }

// takeAgain is take for a request that is repeated.
func (t *turns) takeAgain(limit context.Context) (leave func(), ok bool) {
	return t.wait(limit, &t.then)
}

func (t *turns) wait(limit context.Context, line *[]chan struct{}) (leave func(), ok bool) {
	turn := make(chan struct{})
	t.mu.Lock()
	*line = append(*line, turn)
	t.next()
	t.mu.Unlock()
	select {
	case <-turn:
	case <-limit.Done():
		t.mu.Lock()
		defer t.mu.Unlock()
		for i, waiting := range *line {
			if waiting == turn {
				*line = append((*line)[:i], (*line)[i+1:]...)
				return nil, false
			}
		}
		t.free++ // it had its turn by then
		t.next()
		return nil, false
	}
	end := sync.OnceFunc(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.free++
		t.next()
	})
	timer := time.AfterFunc(placeAtMost, end)
	return func() { timer.Stop(); end() }, true
}

// next gives free turns to those who wait. t.mu is held.
func (t *turns) next() {
	for _, line := range []*[]chan struct{}{&t.first, &t.then} {
		for t.free > 0 && len(*line) > 0 {
			close((*line)[0])
			*line = (*line)[1:]
			t.free--
		}
	}
}

// inTurn are the turns of the requests of one effort, of which the first has its
// turn already. Nil: they wait for nobody. It is for one goroutine.
type inTurn struct {
	turns *turns
	leave func() // ends the turn it has; nil: it has none
}

// take waits for the turn of the next request; false: limit came first.
func (i *inTurn) take(limit context.Context) (leave func(), ok bool) {
	if i == nil {
		return func() {}, true
	}
	if leave := i.leave; leave != nil {
		i.leave = nil
		return leave, true
	}
	return i.turns.takeAgain(limit)
}
