// Package inflight limits how many requests of a client are in flight when the client has
// many to send, as in Close. A request that is sent for the first time goes before a
// repeated one. A request that hangs loses its slot. So requests that hang, and repetitions
// of failed requests, do not delay other requests.
//
// The package does not know the contents of requests, and sends none.
package inflight

import (
	"context"
	"slices"
	"sync"
	"time"
)

// kept is how long a request keeps its slot. After that time another request receives the
// slot, even if the first request has not ended.
const kept = time.Second

// Limiter limits requests in flight. It is safe for concurrent use.
type Limiter struct {
	mu              sync.Mutex
	free            int
	first, repeated []chan struct{} // queues of waiting requests; a channel is closed when its request receives a slot
}

// New returns a Limiter with n slots.
func New(n int) *Limiter { return &Limiter{free: n} }

// Take waits for a slot for a request that is sent for the first time. The request keeps the
// slot until leave is called, or for a second. Take returns false if limit ends first.
func (l *Limiter) Take(limit context.Context) (leave func(), ok bool) { return l.wait(limit, &l.first) }

func (l *Limiter) wait(limit context.Context, queue *[]chan struct{}) (leave func(), ok bool) {
	given := make(chan struct{})
	l.mu.Lock()
	*queue = append(*queue, given)
	l.give()
	l.mu.Unlock()
	select {
	case <-given:
	case <-limit.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		if i := slices.Index(*queue, given); i >= 0 {
			*queue = slices.Delete(*queue, i, i+1)
		} else { // the request has received its slot meanwhile: free the slot
			l.free++
			l.give()
		}
		return nil, false
	}
	end := sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.free++
		l.give()
	})
	timer := time.AfterFunc(kept, end)
	return func() { timer.Stop(); end() }, true
}

// give gives the free slots to waiting requests, first-time requests before repeated ones.
// The caller must hold l.mu.
func (l *Limiter) give() {
	for _, queue := range []*[]chan struct{}{&l.first, &l.repeated} {
		for l.free > 0 && len(*queue) > 0 {
			close((*queue)[0])
			*queue = (*queue)[1:]
			l.free--
		}
	}
}

// Effort takes slots for one request and its repetitions, one slot at a time. A nil Effort
// has no limit. Only one goroutine may use an Effort.
type Effort struct {
	limiter *Limiter
	leave   func() // frees the slot that the next request already has; nil if it has none
}

// Effort returns an Effort whose first request already has a slot. leave frees that slot.
func (l *Limiter) Effort(leave func()) *Effort { return &Effort{limiter: l, leave: leave} }

// Take waits for a slot for the next request of the Effort. It returns false if limit ends
// first.
func (e *Effort) Take(limit context.Context) (leave func(), ok bool) {
	if e == nil {
		return func() {}, true
	}
	if leave := e.leave; leave != nil {
		e.leave = nil
		return leave, true
	}
	return e.limiter.wait(limit, &e.limiter.repeated)
}
