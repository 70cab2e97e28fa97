package requests

import (
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/cli/failure"
)

// Health knows since when no request was answered. It is safe for concurrent use. The
// zero value has not seen any.
type Health struct {
	mu     sync.Mutex
	failed *Request  // the last; nil: the last request was answered
	since  time.Time // the first of those that have failed in a row began

	open       map[*Pending]struct{}
	answeredAt time.Time // zero: not yet
	answers    int
}

// Pending is something that waits for an answer: an operation, or the opening of a file
// that another process uses.
type Pending struct {
	of     *Health
	began  time.Time
	isSent bool // a request was sent; before that, credentials are looked for
}

// Begin says that somebody waits for an answer, until End is called.
func (h *Health) Begin() *Pending {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open == nil {
		h.open = map[*Pending]struct{}{}
	}
	p := &Pending{of: h, began: time.Now()}
	h.open[p] = struct{}{}
	return p
}

// End says that nobody waits any more.
func (p *Pending) End() {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	delete(p.of.open, p)
}

func (p *Pending) sent() {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.isSent = true
}

func (h *Health) saw(r Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case r.cancelled(): // that says nothing about DynamoDB
	case r.answered():
		h.failed, h.answeredAt = nil, time.Now()
		h.answers++
	default:
		if h.failed == nil {
			h.since = r.Began
		}
		h.failed = &r
	}
}

// Answers is how many requests were answered.
func (h *Health) Answers() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.answers
}

// Trouble says for how long and why that server has not answered.
func (h *Health) Trouble(of Server) Trouble {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := Trouble{server: of, answers: h.answers}
	if h.failed != nil {
		t.lasts, t.why, t.throttled = time.Since(h.since), failure.OneLine(h.failed.outcome(of)), h.failed.Throttled()
		return t
	}
	for p := range h.open {
		began := p.began
		if began.Before(h.answeredAt) {
			began = h.answeredAt
		}
		if lasts := time.Since(began); lasts > t.lasts {
			t.lasts, t.unsent = lasts, !p.isSent
		}
	}
	return t
}
