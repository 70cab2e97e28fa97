package election_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestObserveYieldsLeaderAndEachChangeOfLeader(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, other := elect(w, lab.Config()), elect(w, lab.Config())
		watching, _, wire := elects(w, lab.Config())
		o := observe(t, watching)
		o.shows(nobody)
		lab.Elapse(time.Minute)
		o.shows()

		first := campaign(w, e, "a")
		lab.Elapse(polls)
		o.shows(leaderOf(first, "a"))
		lab.Elapse(time.Minute) // the leader renews its term meanwhile; Observe yields nothing, because a renewal is not a change
		o.shows()
		lab.OK(t, first.Renew(t.Context(), leasehold.WithData([]byte("b"))))
		lab.Elapse(polls)
		o.shows(leaderOf(first, "b"))

		late := observe(t, watching) // this observer begins later: it yields the current leader immediately
		late.shows(leaderOf(first, "b"))
		lab.OK(t, late.end())

		w.Release(first)
		lab.Elapse(polls)
		o.shows(nobody)
		second := campaign(w, other, "b")
		lab.Elapse(polls)
		o.shows(leaderOf(second, "b"))
		w.Release(second)
		third := campaign(w, e, "b")
		lab.Elapse(polls)
		news := o.next()
		if len(news) == 0 || news[len(news)-1].Leader != leaderOf(third, "b") {
			t.Errorf("yielded %v, want %v", news, leaderOf(third, "b"))
		}
		w.Release(third)
		lab.WantErr(t, "error after the context ended", o.end(), nil)
		for _, c := range wire.Sent() {
			lab.Want(t, "operation of an observer", c.Op, "GetItem")
		}
	})
}

// Some other lock libraries grant terms without a token. Two terms of one leader then have the same
// token, and differ only in the id of the grant.
func TestObserveYieldsNewTermOfSameLeader(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, _, _ := elects(w, lab.Config())
		term := campaign(w, e, "a")
		o := observe(t, e)
		o.shows(leaderOf(term, "a"))
		w.Update(seat, map[string]types.AttributeValue{"grantId": lab.Str("another")})
		lab.Elapse(polls)
		o.shows(leaderOf(term, "a"))
	})
}

func TestObserveRetriesUntilDynamoDBAnswers(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, _, _ := elects(w, lab.Config())
		watching, _, wire := elects(w, lab.Config())
		o := observe(t, watching)
		o.shows(nobody)
		for _, fault := range []lab.Fault{lab.Cut, lab.Drop, lab.Throttled} {
			wire.SetFault(fault)
			term := campaign(w, e, "a")
			wire.Sent()
			lab.Elapse(time.Minute)
			o.shows()
			lab.WantRange(t, "requests in a minute", len(wire.Sent()), 0, 100)
			wire.SetFault(nil)
			lab.Elapse(5 * time.Second)
			o.shows(leaderOf(term, "a"))
			w.Release(term)
			lab.Elapse(polls)
			o.shows(nobody)
		}
		lab.OK(t, o.end())
	})
}

func TestObserveReturnsPermanentError(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, c, wire := elects(w, lab.Config())
		o := observe(t, e)
		wire.SetFault(lab.Refused("ResourceNotFoundException"))
		lab.Elapse(polls)
		<-o.over
		var op *leasehold.OpError
		if !errors.As(o.err, &op) || op.Key.Partition != seat {
			t.Errorf("no such table: %v", o.err)
		}
		wire.SetFault(nil)

		w.Put(map[string]types.AttributeValue{"key": lab.Str(seat), "ownerName": lab.Str("someone")})
		o = observe(t, e)
		<-o.over
		lab.WantAs[*leasehold.RecordError](t, "observe with a damaged record", o.err)
		w.Delete(seat)

		o = observe(t, e)
		o.shows(nobody)
		closed := time.Now()
		lab.OK(t, c.Close(t.Context()))
		<-o.over
		lab.WantErr(t, "observe by a closed client", o.err, leasehold.ErrClosed)
		lab.WantTook(t, "observe returned after", closed, 0, 0)
		for l, err := range e.Observe(t.Context()) {
			lab.WantErr(t, "Observe of a closed client", err, leasehold.ErrClosed)
			lab.Want(t, "leader", l, nobody)
		}
	})
}

// After the caller has left the loop over Observe, no goroutine remains and no request is sent.
func TestObserveStopsWhenCallerLeavesLoop(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, _, wire := elects(w, lab.Config())
		for _, err := range e.Observe(t.Context()) {
			lab.WantErr(t, "observe", err, nil)
			break
		}
		wire.Sent()
		lab.Elapse(time.Minute)
		lab.Want(t, "requests after the loop", len(wire.Sent()), 0)
	})
}

func TestObserveReadsRecordTwicePerSecond(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, _, _ := elects(w, lab.Config())
		watching, _, wire := elects(w, lab.Config())
		observe(t, watching)
		for _, is := range []string{"empty", "taken", "dead"} {
			var term *leasehold.Lock
			if is == "taken" {
				term = campaign(w, e, "a")
			}
			if is == "dead" {
				w.Update(seat, map[string]types.AttributeValue{"isReleased": nil, "recordVersionNumber": lab.Str("stands still")})
			}
			lab.Elapse(time.Minute)
			wire.Sent()
			lab.Elapse(10 * time.Minute)
			lab.WantRange(t, "requests in ten minutes", len(wire.Sent()), 1000, 1500)
			if term != nil {
				w.Release(term)
			}
		}
	})
}

// An observer and a candidate of the same client both read the record. The candidate must
// still take over from a dead leader within one lease.
func TestObserveDoesNotDelayCampaignOfSameClient(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		leader, _, wire := elects(w, lab.Config())
		campaign(w, leader, "a")
		e, _, _ := elects(w, lab.Config())
		o := observe(t, e)
		lab.Elapse(time.Minute)
		wire.SetFault(lab.Cut)
		began := time.Now()
		term := campaign(w, e, "b")
		lab.WantTook(t, "elected after", began, 0, 20*time.Second+polls)
		lab.Elapse(polls)
		news := o.next()
		if len(news) == 0 || news[len(news)-1].Leader != leaderOf(term, "b") {
			t.Errorf("yielded %v", news)
		}
		w.Release(term)
	})
}

// observer runs Observe in a goroutine until end is called.
type observer struct {
	t    *testing.T
	stop context.CancelFunc
	over chan struct{} // closed when Observe has returned

	mu   sync.Mutex
	seen []observed
	took int // number of entries of "seen" that earlier calls of "next" have returned
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

// The method "next" returns the leaders that Observe has yielded since the last call of this
// method. Observe yields at most one leader for each change.
func (o *observer) next() []observed {
	o.mu.Lock()
	defer o.mu.Unlock()
	news := o.seen[o.took:]
	o.took = len(o.seen)
	return news
}

// shows fails the test unless exactly the given leaders were yielded since the last call of the
// method "next".
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

// end stops the observer and returns the error of Observe.
func (o *observer) end() error {
	o.stop()
	<-o.over
	return o.err
}

func leaderOf(term *leasehold.Lock, value string) election.Leader {
	return election.Leader{Owner: term.Record().Owner, Value: value, Token: term.Token()}
}

var nobody election.Leader

// polls is enough time for an observer to notice a change: twice the mean pause between two of its
// reads.
const polls = 2 * 500 * time.Millisecond
