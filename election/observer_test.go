package election_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
)

// observer observes an election until it is stopped.
type observer struct {
	t    *testing.T
	stop context.CancelFunc
	over chan struct{} // closed when the sequence has ended

	mu   sync.Mutex
	seen []observed
	took int // number of entries of seen that next has returned
	err  error
}

type observed struct {
	election.Leader
	at time.Time
}

func observe(t *testing.T, e *election.Election) *observer {
	ctx, stop := context.WithCancel(t.Context())
	o := &observer{t: t, stop: stop, over: make(chan struct{})}
	go func() {
		defer close(o.over)
		for l, err := range e.Observe(ctx) {
			o.mu.Lock()
			if err != nil {
				o.err = err
			} else {
				o.seen = append(o.seen, observed{l, time.Now()})
			}
			o.mu.Unlock()
		}
	}()
	synctest.Wait()
	return o
}

// next returns the leaders yielded since the last call, with at most one leader for each
// change.
func (o *observer) next() []observed {
	o.mu.Lock()
	defer o.mu.Unlock()
	news := o.seen[o.took:]
	o.took = len(o.seen)
	return news
}

// shows checks that exactly these leaders were yielded since the last call.
func (o *observer) shows(leaders ...election.Leader) {
	o.t.Helper()
	news := o.next()
	ok := len(news) == len(leaders)
	for i := range min(len(news), len(leaders)) {
		ok = ok && news[i].Leader == leaders[i]
	}
	if !ok {
		o.t.Errorf("yielded %v, want %v", news, leaders)
	}
}

// end ends the observation and returns its error.
func (o *observer) end() error {
	o.stop()
	<-o.over
	return o.err
}

func leaderOf(term *leasehold.Lock, value string) election.Leader {
	return election.Leader{Owner: term.Record().Owner, Value: value, Token: term.Token()}
}

var nobody election.Leader

// polls is the longest time from a change until an observer yields it: two longest polls.
const polls = 2 * 500 * time.Millisecond
