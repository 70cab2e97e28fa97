package election_test

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestObserveYieldsLeaderAndEveryChange(t *testing.T) {
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
		lab.Elapse(time.Minute) // renewals are not changes, so they yield nothing
		o.shows()
		lab.OK(t, first.Renew(t.Context(), leasehold.WithData([]byte("b"))))
		lab.Elapse(polls)
		o.shows(leaderOf(first, "b"))

		late := observe(t, watching) // a second observer, which begins later and receives the current leader at once
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
		lab.WantErr(t, "the end of its context is no error", o.end(), nil)
		for _, c := range wire.Sent() {
			if c.Op != "GetItem" {
				t.Errorf("an observer sent %s", c.Op)
			}
		}
	})
}

// The terms of a peer have no number. So the number stays the same when the same leader
// gets a new term.
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
		for _, fault := range []lab.Fault{lab.Cut, reset, lab.Throttled} {
			wire.SetFault(fault)
			term := campaign(w, e, "a")
			wire.Sent()
			lab.Elapse(time.Minute)
			o.shows()
			if n := len(wire.Sent()); n > 100 {
				t.Errorf("%d requests in a minute", n)
			}
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
		wire.SetFault(refusing("ResourceNotFoundException"))
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
		var bad *leasehold.RecordError
		if !errors.As(o.err, &bad) {
			t.Errorf("a damaged record: %v", o.err)
		}
		w.Delete(seat)

		o = observe(t, e)
		o.shows(nobody)
		closed := time.Now()
		lab.OK(t, c.Close(t.Context()))
		<-o.over
		if took := time.Since(closed); !errors.Is(o.err, leasehold.ErrClosed) || took != 0 {
			t.Errorf("a closed client: %v after %v", o.err, took)
		}
		for l, err := range e.Observe(t.Context()) {
			if !errors.Is(err, leasehold.ErrClosed) || l != nobody {
				t.Errorf("a client that was closed before: %v, %v", l, err)
			}
		}
	})
}

// After an observer has left the loop, no goroutine or request remains.
func TestObserveStopsReadingWhenLoopBreaks(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, _, wire := elects(w, lab.Config())
		for _, err := range e.Observe(t.Context()) {
			if err != nil {
				t.Error(err)
			}
			break
		}
		wire.Sent()
		lab.Elapse(time.Minute)
		if n := len(wire.Sent()); n != 0 {
			t.Errorf("%d requests after the loop", n)
		}
	})
}

func TestObserveReadsTwiceASecondEvenWithoutChanges(t *testing.T) {
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
			if n := len(wire.Sent()); n < 1000 || n > 1500 {
				t.Errorf("%s: %d requests in ten minutes", is, n)
			}
			if term != nil {
				w.Release(term)
			}
		}
	})
}

// When this client's observers read the record, its candidates are not woken.
func TestObserveDoesNotDisturbCandidateOfSameClient(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		leader, _, wire := elects(w, lab.Config())
		campaign(w, leader, "a")
		e, _, _ := elects(w, lab.Config())
		o := observe(t, e)
		lab.Elapse(time.Minute)
		wire.SetFault(lab.Cut)
		began := time.Now()
		term := campaign(w, e, "b")
		if took := time.Since(began); took > 20*time.Second+polls {
			t.Errorf("elected after %v", took)
		}
		lab.Elapse(polls)
		news := o.next()
		if len(news) == 0 || news[len(news)-1].Leader != leaderOf(term, "b") {
			t.Errorf("yielded %v", news)
		}
		w.Release(term)
	})
}
