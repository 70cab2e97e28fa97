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

// MostUnanswered is the largest number of attempts of one operation that may be unanswered at the
// same time. The operator IN accepts at most 100 values (DynamoDB developer guide, "Condition
// expressions"). Half of them are left for the attempts of an earlier operation.
const MostUnanswered = 50

// Attempt is one write, which the client sends once. ID returns the version that the attempt
// writes. No other attempt writes the same version.
type Attempt interface{ ID() string }

// Version is an Attempt that consists only of its version.
type Version string

// ID returns v as a string.
func (v Version) ID() string { return string(v) }

// Outcome is the outcome of an attempt, or of a whole sequence of attempts.
type Outcome int

// Values of Outcome. Run returns NotApplied only if AWS has refused the request, or if it is too
// late for another attempt.
const (
	Unanswered Outcome = iota // this attempt, or an earlier attempt of the sequence, may have been applied or may still be applied
	Applied                   // this attempt was applied, or the record shows an earlier attempt of the sequence
	Rejected                  // the condition failed, and the record shows that no attempt of the sequence was applied
	NotApplied                // the attempt was not applied, and never will be; the client can retry unless the cause is Refused
)

// Result is the result of an attempt, or of a sequence of attempts.
type Result[A Attempt] struct {
	Outcome Outcome
	Attempt A             // the attempt that was applied, or the last attempt if no attempt was applied
	Item    protocol.Item // the record after the write, or the record for which the condition failed; nil if no record exists
	Cause   decide.Cause
	Outage  bool
	Err     error // error of the request of the last attempt; nil if the reply was a success
}

// Failure returns the error and the cause of r as a *Failure.
func (r Result[A]) Failure() *Failure { return &Failure{Cause: r.Cause, Err: r.Err} }

// Operation is one operation on a record, which a Sequence sends as attempts.
type Operation[A Attempt] struct {
	Key protocol.Key

	// Next returns the next attempt and its write. The condition of the write must name the
	// versions of the unanswered attempts of the sequence.
	Next func() (A, *protocol.Write)

	// Within is how long an attempt waits for the reply. Zero means Limit.
	Within time.Duration

	// Shows returns the attempt that was applied, according to the record "item", which is nil if
	// no record exists. The slice "sent" contains the attempts that may have been applied, oldest
	// first. Shows returns false if no attempt was applied, or if the caller can no longer use it.
	Shows func(item protocol.Item, sent []A) (A, bool)

	// BeforeSend waits until the client may send the next attempt. Once the attempt has ended, Try
	// calls the function that BeforeSend has returned. If it is too late for another attempt,
	// BeforeSend returns an error, and the sequence ends. BeforeSend may be nil.
	BeforeSend func() (leave func(), err error)

	// Try and Send call Throttled after each attempt that was throttled, or in conflict with
	// a transaction. Throttled may be nil.
	Throttled func(error)

	// Pauses determines how long Run pauses between attempts.
	Pauses Pauses

	// RetryDenied makes Run retry after IAM has denied a request. [Failure.After] explains why a
	// denial may be temporary.
	RetryDenied bool
}

// Sequence contains the attempts of an operation that have had no answer. It is safe for
// concurrent use, but only one goroutine may send an attempt at a time.
type Sequence[A Attempt] struct {
	mu         sync.Mutex
	unanswered []A  // attempts without an answer, oldest first
	silent     bool // true if at least one attempt has received no reply
	begun      bool // true if an attempt has been sent
	lastErr    error
}

// Unanswered returns the attempts without an answer, oldest first.
func (q *Sequence[A]) Unanswered() []A {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.unanswered)
}

// Versions returns the versions of the attempts without an answer, oldest first.
func (q *Sequence[A]) Versions() []string { return Versions(q.Unanswered()) }

// Versions returns the versions of the given attempts, in the same order.
func Versions[A Attempt](attempts []A) []string {
	out := make([]string, len(attempts))
	for i, a := range attempts {
		out[i] = a.ID()
	}
	return out
}

// Find returns the unanswered attempt with the given version. It returns false if there is
// no such attempt.
func (q *Sequence[A]) Find(version string) (A, bool) { return Find(q.Unanswered(), version) }

// Find returns the attempt with the given version from a list of attempts. It returns false if
// there is no such attempt.
func Find[A Attempt](attempts []A, version string) (found A, ok bool) {
	i := slices.IndexFunc(attempts, func(a A) bool { return a.ID() == version })
	if i < 0 {
		return found, false
	}
	return attempts[i], true
}

// Add records an attempt as unanswered: it is in flight, or has ended without an answer.
func (q *Sequence[A]) Add(a A) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.unanswered = append(q.unanswered, a)
	q.begun = true
}

// Answered reports whether at least one attempt was sent and all attempts have had an answer.
// If so, no attempt is in flight, and DynamoDB can apply no attempt later.
func (q *Sequence[A]) Answered() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.begun && len(q.unanswered) == 0
}

// Silent reports whether at least one attempt got no reply, or a reply that leaves the outcome
// open, such as a 5xx error. An attempt whose condition failed does not count, even if it is
// unanswered because the client could not read the record.
func (q *Sequence[A]) Silent() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.silent
}

// LastErr returns the error of the last attempt that has ended, with or without an answer. It
// returns nil if that attempt succeeded, or if none has ended. It is for a caller that stops
// waiting while the next attempt is in flight.
func (q *Sequence[A]) LastErr() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lastErr
}

// NoReply records that the client has received no reply to the last attempt.
func (q *Sequence[A]) NoReply() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.silent = true
}

// Drop removes an attempt from the unanswered attempts. The caller must know that the attempt was
// not applied, or must handle the attempt's outcome itself.
func (q *Sequence[A]) Drop(version string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.unanswered = slices.DeleteFunc(q.unanswered, func(a A) bool { return a.ID() == version })
}

// Settle removes an attempt that was applied, and all earlier attempts, from the unanswered
// attempts. DynamoDB can no longer apply any of the earlier attempts, because the record has lost
// the values that their conditions name.
func (q *Sequence[A]) Settle(version string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.IndexFunc(q.unanswered, func(a A) bool { return a.ID() == version }); i >= 0 {
		q.unanswered = slices.Delete(q.unanswered, 0, i+1)
	}
}

// Keep removes all unanswered attempts except the newest n, because a condition can name only a
// limited number of attempts. It returns the removed attempts, oldest first.
func (q *Sequence[A]) Keep(n int) (dropped []A) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if extra := len(q.unanswered) - n; extra > 0 {
		dropped = slices.Clone(q.unanswered[:extra])
		q.unanswered = slices.Delete(q.unanswered, 0, extra)
	}
	return dropped
}

// Try sends the next attempt of op, and returns its result. It cancels the request if ctx
// ends.
func (q *Sequence[A]) Try(ctx context.Context, s *Sender, op Operation[A]) Result[A] {
	if op.BeforeSend != nil {
		leave, err := op.BeforeSend()
		if err != nil {
			return Result[A]{Outcome: NotApplied, Err: err} // the result has no cause, as no request was sent
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

// Send sends the attempt a as the write w. The caller must have called Add for a. An applied
// attempt stays unanswered until the caller calls Settle, so that the caller can record the result
// first.
func (q *Sequence[A]) Send(ctx context.Context, s *Sender, op Operation[A], a A, w *protocol.Write) Result[A] {
	reply := s.Write(ctx, w, cmp.Or(op.Within, Limit))
	q.mu.Lock()
	q.lastErr = reply.Err
	q.mu.Unlock()
	r := Result[A]{Attempt: a, Item: reply.Item, Cause: reply.Cause, Outage: reply.Outage, Err: reply.Err}
	switch {
	case reply.Effect == decide.Applied:
		r.Outcome = Applied
		return r
	case reply.Cause == decide.ConditionFailed:
		return q.conditionFailed(ctx, s, op, r)
	case reply.Effect == decide.Unknown:
		q.NoReply()
		r.Outcome = Unanswered
		return r
	}
	q.Drop(a.ID())
	r.Outcome = NotApplied
	if reply.Cause == decide.Busy && op.Throttled != nil {
		op.Throttled(reply.Err)
	}
	return r
}

// Run sends attempts of op until the sequence ends. It sends no retry after limit has ended, or
// after MostUnanswered attempts of this call have had no answer. When limit ends, the request in
// flight continues. When ctx ends, that request is cancelled, so ctx must last longer than limit.
func (q *Sequence[A]) Run(ctx, limit context.Context, s *Sender, op Operation[A]) Result[A] {
	pauses := op.Pauses
	before := len(q.Unanswered())
	for last := error(nil); ; {
		r := q.Try(ctx, s, op)
		if r.Outcome == Applied || r.Outcome == Rejected {
			return r
		}
		tooLate := r.Cause == decide.None // a result without a cause means that BeforeSend returned an error, as it was too late for another attempt
		refused := r.Failure().After(op.RetryDenied).Cause == decide.Refused
		if tooLate && last != nil {
			r.Err = fmt.Errorf("%w: %w", r.Err, last)
		}
		if unanswered := len(q.Unanswered()); tooLate || refused || unanswered >= before+MostUnanswered || !s.Pause(limit, &pauses) {
			if unanswered > 0 {
				r.Outcome = Unanswered
			}
			return r
		}
		last = r.Err
	}
}

// conditionFailed adds the outcome to r, the result of an attempt whose condition failed, and
// returns r. If the reply contains no record, conditionFailed also adds the record.
func (q *Sequence[A]) conditionFailed(ctx context.Context, s *Sender, op Operation[A], r Result[A]) Result[A] {
	if r.Item == nil { // no record exists, or the DynamoDB-compatible engine does not return it with a failed condition
		item, err := s.Read(context.WithoutCancel(ctx), op.Key)
		if err != nil {
			// The attempt still counts as unanswered, because the network may have delivered its request
			// twice. DynamoDB may have applied the first copy, and this may be the reply to the second copy.
			r.Outcome, r.Cause, r.Err = Unanswered, decide.Unreachable, FailureOf(err).Err
			return r
		}
		r.Item = item
	}
	if op.Shows != nil {
		if a, ok := op.Shows(r.Item, q.Unanswered()); ok {
			r.Outcome, r.Attempt = Applied, a
			return r
		}
	}
	q.Drop(r.Attempt.ID())
	r.Outcome = Rejected
	return r
}
