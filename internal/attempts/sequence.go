package attempts

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// MostUnanswered is how many attempts of a sequence may be without an answer: a
// condition's IN takes 100 values (DynamoDB developer guide, "Condition
// expressions"), and an operation may begin with as many of its own.
const MostUnanswered = 50

// Attempt is one write sent once. Its version is never used again.
type Attempt interface{ ID() string }

// Outcome is how an attempt ends, and a sequence with it.
type Outcome int

// The outcomes. NotApplied ends a sequence only when its bounds are over.
const (
	Unanswered Outcome = iota // it, or one before it, may be applied yet
	Applied                   // it was, or the earlier one that the record shows
	Rejected                  // the record shows none of them
	Refused                   // AWS will not do it, and none of them can be applied
	NotApplied                // throttled, or in conflict: it can be repeated
)

// Result is how an attempt or a sequence ended.
type Result[A Attempt] struct {
	Outcome Outcome
	Attempt A             // the one that was applied; else the last
	Earlier bool          // the record shows that attempt, whose own reply did not say so
	Item    protocol.Item // the record that was made, or that rejected; nil: there is none
	Cause   decide.Cause
	Outage  bool
	Err     error // why it was not applied
}

// Failure is the failure of an attempt that was neither applied nor rejected.
func (r Result[A]) Failure() error {
	return &Failure{Cause: r.Cause, Outage: r.Outage, Err: r.Err}
}

// Operation is what one kind of write is to its sequence of attempts.
type Operation[A Attempt] struct {
	Key protocol.Key

	// Next spells the next attempt. Its condition names the versions of the
	// sequence that are unanswered.
	Next func() (A, *protocol.Write)

	// Within is the deadline of an attempt; 0: Limit.
	Within time.Duration

	// Shows returns the attempt that a record shows, of those sent that may have
	// been applied, oldest first, the last one last. The record is nil if there
	// is none. False: it shows none, or one that is of no use any more.
	Shows func(item protocol.Item, sent []A) (A, bool)

	// Turn waits until the next attempt may be sent, and returns what to call once
	// it has been answered. An error ends the sequence: it is too late. Nil: at
	// once.
	Turn func() (leave func(), err error)

	// Throttled hears of each attempt that was throttled, or in conflict; may be
	// nil.
	Throttled func(error)
}

// Sequence is the attempts of an operation that have had no answer. It is safe
// for concurrent use; attempts take turns by their callers' rules.
type Sequence[A Attempt] struct {
	mu         sync.Mutex
	unanswered []A  // oldest first
	silent     bool // one has had no reply at all
}

// Unanswered returns the attempts without an answer, oldest first.
func (q *Sequence[A]) Unanswered() []A {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.unanswered)
}

// Versions returns the versions of the attempts without an answer, oldest first.
func (q *Sequence[A]) Versions() []string { return Versions(q.Unanswered()) }

// Versions returns the versions of attempts.
func Versions[A Attempt](attempts []A) []string {
	out := make([]string, len(attempts))
	for i, a := range attempts {
		out[i] = a.ID()
	}
	return out
}

// Find returns the unanswered attempt of that version.
func (q *Sequence[A]) Find(version string) (A, bool) { return Find(q.Unanswered(), version) }

// Find returns the attempt of that version.
func Find[A Attempt](attempts []A, version string) (found A, ok bool) {
	i := slices.IndexFunc(attempts, func(a A) bool { return a.ID() == version })
	if i < 0 {
		return found, false
	}
	return attempts[i], true
}

// Add enters an attempt whose effect is not known: it is under way, or has had
// no answer.
func (q *Sequence[A]) Add(a A) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.unanswered = append(q.unanswered, a)
}

// Silent reports whether an attempt has had no reply at all. One whose condition
// failed on a record that could not be read then is unanswered, and not silent.
func (q *Sequence[A]) Silent() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.silent
}

// NoReply enters that the last attempt has had no reply at all.
func (q *Sequence[A]) NoReply() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.silent = true
}

// Drop removes an attempt: it was not applied, or is accounted for elsewhere.
func (q *Sequence[A]) Drop(version string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.unanswered = slices.DeleteFunc(q.unanswered, func(a A) bool { return a.ID() == version })
}

// Settle removes an attempt that was applied, and those before it: their
// conditions name versions that are gone.
func (q *Sequence[A]) Settle(version string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.IndexFunc(q.unanswered, func(a A) bool { return a.ID() == version }); i >= 0 {
		q.unanswered = slices.Delete(q.unanswered, 0, i+1)
	}
}

// Keep drops all but the newest n, which a condition can still name, and returns
// what it dropped.
func (q *Sequence[A]) Keep(n int) (dropped []A) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if extra := len(q.unanswered) - n; extra > 0 {
		dropped = slices.Clone(q.unanswered[:extra])
		q.unanswered = slices.Delete(q.unanswered, 0, extra)
	}
	return dropped
}

// Try sends the next attempt. ctx is that of the request.
func (q *Sequence[A]) Try(ctx context.Context, s *Sender, op Operation[A]) Result[A] {
	if op.Turn != nil {
		leave, err := op.Turn()
		if err != nil {
			return Result[A]{Outcome: NotApplied, Err: err} // without a cause: nothing was sent
		}
		defer leave()
	}
	a, w := op.Next()
	q.Add(a)
	r := q.Send(ctx, s, op, a, w)
	if r.Outcome == Applied {
		q.Drop(a.ID())
	}
	return r
}

// Send sends an attempt that was added already, since while it is under way its
// effect is as unknown as without an answer. It is Try for those who share the
// sequence with others: one that was applied stays among the unanswered until
// its caller has entered what that changes, and then calls Settle.
func (q *Sequence[A]) Send(ctx context.Context, s *Sender, op Operation[A], a A, w *protocol.Write) Result[A] {
	reply := s.Write(ctx, w, cmp.Or(op.Within, Limit))
	r := Result[A]{Attempt: a, Item: reply.Item, Cause: reply.Cause, Outage: reply.Outage, Err: reply.Err}
	switch {
	case reply.Effect == decide.Applied:
		r.Outcome = Applied
		return r
	case reply.Cause == decide.ConditionFailed:
		return q.met(ctx, s, op, r, reply.Old)
	case reply.Effect == decide.Unknown:
		q.NoReply()
		r.Outcome = Unanswered
		return r
	}
	q.Drop(a.ID())
	r.Outcome = NotApplied
	if reply.Cause == decide.Refused {
		r.Outcome = Refused
	}
	if reply.Cause == decide.Busy && op.Throttled != nil {
		op.Throttled(reply.Err)
	}
	return r
}

// Run sends attempts until the sequence ends: no later than limit, and with no
// more than MostUnanswered attempts without an answer. ctx is that of the requests: that
// nobody waits any more must not end a write whose effect has to be known.
func (q *Sequence[A]) Run(ctx, limit context.Context, s *Sender, op Operation[A]) Result[A] {
	var pauses Pauses
	before := q.len()
	for last := error(nil); ; {
		r := q.Try(ctx, s, op)
		if r.Outcome == Applied || r.Outcome == Rejected {
			return r
		}
		tooLate := r.Outcome == NotApplied && r.Cause == decide.None
		if tooLate && last != nil {
			r.Err = fmt.Errorf("%w: %w", r.Err, last)
		}
		if open := q.len(); tooLate || r.Outcome == Refused || open >= before+MostUnanswered || !s.Pause(limit, &pauses) {
			if open > 0 {
				r.Outcome = Unanswered
			}
			return r
		}
		last = r.Err
	}
}

func (q *Sequence[A]) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.unanswered)
}

// met says what the record means that the condition of an attempt failed on.
func (q *Sequence[A]) met(ctx context.Context, s *Sender, op Operation[A], r Result[A], old protocol.Item) Result[A] {
	r.Item = old
	if old == nil { // there is none, or the engine does not return it
		item, err := s.Read(context.WithoutCancel(ctx), op.Key)
		if err != nil {
			// Not dropped: this may be the reply to a second copy of the request.
			r.Outcome, r.Cause, r.Err = Unanswered, decide.Unreachable, FailureOf(err).Err
			return r
		}
		r.Item = item
	}
	if op.Shows != nil {
		if a, ok := op.Shows(r.Item, q.Unanswered()); ok {
			r.Outcome, r.Earlier, r.Attempt = Applied, true, a
			return r
		}
	}
	q.Drop(r.Attempt.ID())
	r.Outcome = Rejected
	return r
}

// Part is the next attempt of one of several sequences.
type Part[A Attempt] struct {
	Sequence *Sequence[A]
	Attempt  A
	Write    *protocol.Write
}

// Together sends the next attempts of several sequences as one transaction, once:
// all are applied, or none is.
func Together[A Attempt](ctx context.Context, s *Sender, within time.Duration, parts []Part[A]) (decide.Transaction, error) {
	writes := make([]*protocol.Write, len(parts))
	for i, p := range parts {
		p.Sequence.Add(p.Attempt)
		writes[i] = p.Write
	}
	t, err := s.Transact(ctx, writes, within)
	for _, p := range parts {
		if t.Effect == decide.Unknown {
			p.Sequence.NoReply()
		} else {
			p.Sequence.Drop(p.Attempt.ID())
		}
	}
	return t, err
}
