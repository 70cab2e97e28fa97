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

// MostUnanswered is how many attempts of one operation may be without an answer at a time.
// A condition's IN takes 100 values (DynamoDB developer guide, "Condition expressions"),
// and the operation may have to name as many unanswered attempts of an earlier one.
const MostUnanswered = 50

// Attempt is one write sent once. Its version is never used again.
type Attempt interface{ ID() string }

// Version is an attempt without any state but its version.
type Version string

// ID is the version.
func (v Version) ID() string { return string(v) }

// Outcome is how an attempt ends, and a sequence with it.
type Outcome int

// The outcomes. NotApplied ends a sequence only when its time is over.
const (
	Unanswered Outcome = iota // it, or one before it, may still be applied
	Applied                   // it was applied, or an earlier one was, which the record shows
	Rejected                  // the condition failed, and the record shows no attempt of the sequence
	Refused                   // AWS rejects the request, and no attempt can be applied later
	NotApplied                // throttled, or in conflict: it can be retried
)

// Result is how an attempt or a sequence ended.
type Result[A Attempt] struct {
	Outcome Outcome
	Attempt A             // the one that was applied; else the last
	Earlier bool          // the record shows that attempt, though its own reply did not
	Item    protocol.Item // the record as written, or as the failed condition found it; nil if there is none
	Cause   decide.Cause
	Outage  bool
	Err     error // why it was not applied
}

// Failure returns the error of an attempt that was neither applied nor rejected.
func (r Result[A]) Failure() error {
	return &Failure{Cause: r.Cause, Err: r.Err}
}

// Operation is one kind of write, as a sequence of attempts needs to know it.
type Operation[A Attempt] struct {
	Key protocol.Key

	// Next returns the next attempt and its write. Its condition names the versions of the
	// sequence that are unanswered.
	Next func() (A, *protocol.Write)

	// Within is the deadline of an attempt; 0: Limit.
	Within time.Duration

	// Shows returns the attempt that a record shows: an element of sent, which may all have
	// been applied, oldest first. The record is nil if there is none. Shows returns false
	// if the record shows no attempt, or one that can no longer be used.
	Shows func(item protocol.Item, sent []A) (A, bool)

	// BeforeSend waits until the next attempt may be sent. It returns the function to
	// call once that has been answered. An error ends the sequence: it is too
	// late. May be nil.
	BeforeSend func() (leave func(), err error)

	// Throttled is called for each attempt that was throttled, or in conflict. May
	// be nil.
	Throttled func(error)

	// Pauses are the pauses between the attempts of Run.
	Pauses Pauses

	// RetryDenied has Run repeat an attempt whose denial may pass: see [Failure.After].
	RetryDenied bool
}

// Sequence holds the attempts of an operation that have had no answer. It is safe for
// concurrent use. Its callers decide whose attempt is sent next.
type Sequence[A Attempt] struct {
	mu         sync.Mutex
	unanswered []A  // oldest first
	silent     bool // one has had no reply at all
	begun      bool // a request has been sent
	lastErr    error
}

// Unanswered returns the attempts without an answer, oldest first.
func (q *Sequence[A]) Unanswered() []A {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.unanswered)
}

// Versions returns the versions of the attempts without an answer, oldest first.
func (q *Sequence[A]) Versions() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return Versions(q.unanswered)
}

// Versions returns the versions of attempts.
func Versions[A Attempt](attempts []A) []string {
	out := make([]string, len(attempts))
	for i, a := range attempts {
		out[i] = a.ID()
	}
	return out
}

// Find returns the unanswered attempt of that version.
func (q *Sequence[A]) Find(version string) (A, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return Find(q.unanswered, version)
}

// Find returns the attempt of that version.
func Find[A Attempt](attempts []A, version string) (found A, ok bool) {
	i := slices.IndexFunc(attempts, func(a A) bool { return a.ID() == version })
	if i < 0 {
		return found, false
	}
	return attempts[i], true
}

// Add adds an attempt whose effect is not known: it is in flight, or has had no
// answer.
func (q *Sequence[A]) Add(a A) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.unanswered = append(q.unanswered, a)
	q.begun = true
}

// Answered reports whether an attempt has been sent, and all have been answered: none
// is in flight, and none may be applied later.
func (q *Sequence[A]) Answered() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.begun && len(q.unanswered) == 0
}

// Silent reports whether an attempt has had no reply at all. One whose condition failed
// on a record that could not be read is unanswered, but not silent.
func (q *Sequence[A]) Silent() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.silent
}

// LastErr returns why the last attempt that has ended was not applied. It is for a caller
// that leaves while the next is in flight. It returns nil if no attempt has failed.
func (q *Sequence[A]) LastErr() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lastErr
}

func (q *Sequence[A]) setLastErr(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lastErr = err
}

// NoReply records that the last attempt has had no reply at all.
func (q *Sequence[A]) NoReply() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.silent = true
}

// Drop removes an attempt: it was not applied, or its caller has dealt with it.
func (q *Sequence[A]) Drop(version string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.unanswered = slices.DeleteFunc(q.unanswered, func(a A) bool { return a.ID() == version })
}

// Settle removes an attempt that was applied, and the attempts before it: the record no
// longer shows what their conditions name.
func (q *Sequence[A]) Settle(version string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.IndexFunc(q.unanswered, func(a A) bool { return a.ID() == version }); i >= 0 {
		q.unanswered = slices.Delete(q.unanswered, 0, i+1)
	}
}

// Keep drops all attempts but the newest n, as a condition can name only a limited number.
// It returns the dropped ones, oldest first.
func (q *Sequence[A]) Keep(n int) (dropped []A) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if extra := len(q.unanswered) - n; extra > 0 {
		dropped = slices.Clone(q.unanswered[:extra])
		q.unanswered = slices.Delete(q.unanswered, 0, extra)
	}
	return dropped
}

// Try sends the next attempt. ctx bounds the request.
func (q *Sequence[A]) Try(ctx context.Context, s *Sender, op Operation[A]) Result[A] {
	if op.BeforeSend != nil {
		leave, err := op.BeforeSend()
		if err != nil {
			return Result[A]{Outcome: NotApplied, Err: err} // no cause: nothing was sent
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

// Send is Try for callers who share the sequence with others. The caller has added the
// attempt already: while it is in flight, its effect is not known. If it is applied, it
// stays among the unanswered until the caller has recorded that, and calls Settle.
func (q *Sequence[A]) Send(ctx context.Context, s *Sender, op Operation[A], a A, w *protocol.Write) Result[A] {
	reply := s.Write(ctx, w, cmp.Or(op.Within, Limit))
	q.setLastErr(reply.Err)
	r := Result[A]{Attempt: a, Item: reply.Item, Cause: reply.Cause, Outage: reply.Outage, Err: reply.Err}
	switch {
	case reply.Effect == decide.Applied:
		r.Outcome = Applied
		return r
	case reply.Cause == decide.ConditionFailed:
		return q.conditionFailed(ctx, s, op, r, reply.Old)
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

// Run sends attempts until the sequence ends: no later than limit, and with no more than
// MostUnanswered attempts without an answer. ctx bounds the requests, and outlives limit: a
// write whose outcome must be known continues when no caller waits for it.
func (q *Sequence[A]) Run(ctx, limit context.Context, s *Sender, op Operation[A]) Result[A] {
	pauses := op.Pauses
	before := q.len()
	for last := error(nil); ; {
		r := q.Try(ctx, s, op)
		if r.Outcome == Applied || r.Outcome == Rejected {
			return r
		}
		tooLate := r.Cause == decide.None // nothing was sent
		refused := r.Outcome == Refused && FailureOf(r.Failure()).After(op.RetryDenied).Cause == decide.Refused
		if tooLate && last != nil {
			r.Err = fmt.Errorf("%w: %w", r.Err, last)
		}
		if unanswered := q.len(); tooLate || refused || unanswered >= before+MostUnanswered || !s.Pause(limit, &pauses) {
			if unanswered > 0 {
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

// conditionFailed finds out what a failed condition means: old is the record.
func (q *Sequence[A]) conditionFailed(ctx context.Context, s *Sender, op Operation[A], r Result[A], old protocol.Item) Result[A] {
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
