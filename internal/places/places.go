// Package places limits how many requests of a client are in flight when it has many
// to send, as when it closes. A request that is sent for the first time goes before
// one that is repeated. A request that hangs loses its place. So requests that hang
// or are refused do not hold up the others.
//
// It does not know what the requests are, and sends none.
package places

import (
	"context"
	"slices"
	"sync"
	"time"
)

// kept is how long one request keeps its place. After that another one is sent
// beside it.
const kept = time.Second

// Places are places for requests in flight. They are safe for concurrent use.
type Places struct {
	mu              sync.Mutex
	free            int
	first, repeated []chan struct{} // waiting, in order; closed when they have a place
}

// New returns n places.
func New(n int) *Places { return &Places{free: n} }

// Take waits for a place for a request that is sent for the first time. The request keeps
// it until leave is called. Take returns false if limit ends first.
func (p *Places) Take(limit context.Context) (leave func(), ok bool) { return p.wait(limit, &p.first) }

func (p *Places) wait(limit context.Context, queue *[]chan struct{}) (leave func(), ok bool) {
	given := make(chan struct{})
	p.mu.Lock()
	*queue = append(*queue, given)
	p.give()
	p.mu.Unlock()
	select {
	case <-given:
	case <-limit.Done():
		p.mu.Lock()
		defer p.mu.Unlock()
		if i := slices.Index(*queue, given); i >= 0 {
			*queue = slices.Delete(*queue, i, i+1)
			return nil, false
		}
		p.free++ // it had received its place by then
		p.give()
		return nil, false
	}
	end := sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.free++
		p.give()
	})
	timer := time.AfterFunc(kept, end)
	return func() { timer.Stop(); end() }, true
}

// give gives the free places to waiting requests. p.mu is held.
func (p *Places) give() {
	for _, queue := range []*[]chan struct{}{&p.first, &p.repeated} {
		for p.free > 0 && len(*queue) > 0 {
			close((*queue)[0])
			*queue = (*queue)[1:]
			p.free--
		}
	}
}

// Effort takes the places for one request and its repetitions. A nil Effort does not wait
// for places. An Effort is for one goroutine.
type Effort struct {
	places *Places
	leave  func() // leaves the place that the next request already has; nil if it has none
}

// Effort returns an effort whose first request has a place already, until leave is
// called.
func (p *Places) Effort(leave func()) *Effort { return &Effort{places: p, leave: leave} }

// Take waits for the place of the next request. It returns false if limit ends first.
func (e *Effort) Take(limit context.Context) (leave func(), ok bool) {
	if e == nil {
		return func() {}, true
	}
	if leave := e.leave; leave != nil {
		e.leave = nil
		return leave, true
	}
	return e.places.wait(limit, &e.places.repeated)
}
