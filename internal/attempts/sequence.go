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
// A condition's IN takes 100 values (DynamoDB developer guide, "Condition expressions").
// Half of them are for the attempts of an earlier operation, which the condition may have
// to name as well.
const MostUnanswered = 50

// Attempt is one write sent once. Its version is never used again.
type Attempt interface{ ID() string }

// Version is an attempt that consists of its version alone.
type Version string

// ID returns the version.
func (v Version) ID() string { return string(v) }

// Outcome is the result of an attempt, and of a sequence that ends with this attempt.
type Outcome int

// Values of Outcome. NotApplied ends a sequence only if the time of the sequence has run
// out.
const (
	Unanswered Outcome = iota // this attempt, or an earlier one, may have been applied or may still be applied
	Applied                   // this attempt was applied, or the record shows an earlier one
	Rejected                  // the condition failed, and the record shows no attempt of the sequence
	Refused                   // AWS refuses the request, and no attempt can be applied later
	NotApplied                // the attempt was throttled, or conflicted with a transaction, and can be retried
)

// Result is how an attempt or a sequence ended.
type Result[A Attempt] struct {
	Outcome Outcome
	Attempt A             // the attempt that was applied; if none was applied, the last attempt
	Item    protocol.Item // the record that was written, or that failed the condition; nil if there is no record
	Cause   decide.Cause
	Outage  bool
	Err     error // why the attempt was not applied
}

// Failure returns the error of an attempt that was neither applied nor rejected.
func (r Result[A]) Failure() *Failure { return &Failure{Cause: r.Cause, Err: r.Err} }

// Operation is one kind of write, described for a sequence of attempts.
type Operation[A Attempt] struct {
	Key protocol.Key

	// Next returns the next attempt and its write. The write's condition names the
	// unanswered versions of the sequence.
	Next func() (A, *protocol.Write)

	// Within is the deadline of an attempt; zero means Limit.
	Within time.Duration

	// Shows returns the attempt that a record shows. sent are the attempts that may have
	// been applied, oldest first. The item is nil if there is no record. Shows returns false
	// if the record shows no attempt, or one that can no longer be used.
	Shows func(item protocol.Item, sent []A) (A, bool)

	// BeforeSend waits until the next attempt may be sent. It returns a function to call
	// once that attempt has been answered. If it is too late to send, BeforeSend returns an
	// error, which ends the sequence. BeforeSend may be nil.
	BeforeSend func() (leave func(), err error)

	// Throttled is called for each attempt that was throttled, or in conflict with a
	// transaction. It may be nil.
	Throttled func(error)

	// Pauses determines how long Run pauses between attempts.
	Pauses Pauses

	// RetryDenied makes Run repeat a denied attempt if the denial may be temporary: see
	// [Failure.After].
	RetryDenied bool
}

// Sequence holds the attempts of an operation that have had no answer. It is safe for
// concurrent use. Its callers take turns at sending.
type Sequence[A Attempt] struct {
	mu         sync.Mutex
	unanswered []A  // attempts without an answer, oldest first
	silent     bool // true if an attempt has had no reply at all
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

// Versions returns the versions of attempts.
func Versions[A Attempt](attempts []A) []string {
	out := make([]string, len(attempts))
	for i, a := range attempts {
		out[i] = a.ID()
	}
	return out
}

// Find returns the unanswered attempt with the given version.
func (q *Sequence[A]) Find(version string) (A, bool) { return Find(q.Unanswered(), version) }

// Find returns the attempt with the given version.
func Find[A Attempt](attempts []A, version string) (found A, ok bool) {
	i := slices.IndexFunc(attempts, func(a A) bool { return a.ID() == version })
	if i < 0 {
		return found, false
	}
	return attempts[i], true
}

// Add adds an attempt whose outcome is not known: it is in flight, or has had no answer.
func (q *Sequence[A]) Add(a A) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.unanswered = append(q.unanswered, a)
	q.begun = true
}

// Answered reports whether at least one attempt has been sent and all attempts have been
// answered: no attempt is in flight, and none can be applied later.
func (q *Sequence[A]) Answered() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.begun && len(q.unanswered) == 0
}

// Silent reports whether an attempt has had no reply at all. An attempt whose condition
// failed, but whose record could not be read, is unanswered but not silent.
func (q *Sequence[A]) Silent() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.silent
}

// LastErr returns the error of the last attempt that has ended, for a caller that stops
// waiting while the next one is in flight. It returns nil if no attempt has failed.
func (q *Sequence[A]) LastErr() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lastErr
}

// NoReply records that the last attempt has had no reply at all.
func (q *Sequence[A]) NoReply() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.silent = true
}

// Drop removes an attempt that was not applied, or whose outcome the caller handles itself.
func (q *Sequence[A]) Drop(version string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.unanswered = slices.DeleteFunc(q.unanswered, func(a A) bool { return a.ID() == version })
}

// Settle removes an attempt that was applied, and the attempts before it. The earlier
// attempts cannot be applied later: the record no longer contains the values that their
// conditions name.
func (q *Sequence[A]) Settle(version string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.IndexFunc(q.unanswered, func(a A) bool { return a.ID() == version }); i >= 0 {
		q.unanswered = slices.Delete(q.unanswered, 0, i+1)
	}
}

// Keep removes all attempts but the newest n, as a condition can name only a limited number
// of attempts. It returns the removed attempts, oldest first.
func (q *Sequence[A]) Keep(n int) (dropped []A) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if extra := len(q.unanswered) - n; extra > 0 {
		dropped = slices.Clone(q.unanswered[:extra])
		q.unanswered = slices.Delete(q.unanswered, 0, extra)
	}
	return dropped
}

// Try sends the next attempt. The request ends with ctx.
func (q *Sequence[A]) Try(ctx context.Context, s *Sender, op Operation[A]) Result[A] {
	if op.BeforeSend != nil {
		leave, err := op.BeforeSend()
		if err != nil {
			return Result[A]{Outcome: NotApplied, Err: err} // the result has no cause, as nothing was sent
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

// Send is like Try, for a caller that shares the sequence with others and has already added
// the attempt to it. An applied attempt stays in the sequence, as if it had no answer,
// until that caller has recorded the result and calls Settle.
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

// Run sends attempts until the sequence ends. It begins no retry after limit has ended, or
// when MostUnanswered attempts of this call have no answer. The requests end with ctx. ctx
// must outlive limit, as a write whose outcome must be known continues after its caller has
// stopped waiting.
func (q *Sequence[A]) Run(ctx, limit context.Context, s *Sender, op Operation[A]) Result[A] {
	pauses := op.Pauses
	before := len(q.Unanswered())
	for last := error(nil); ; {
		r := q.Try(ctx, s, op)
		if r.Outcome == Applied || r.Outcome == Rejected {
			return r
		}
		tooLate := r.Cause == decide.None // a result without a cause means that nothing was sent, because there was no time left
		refused := r.Outcome == Refused && r.Failure().After(op.RetryDenied).Cause == decide.Refused
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

// conditionFailed finds out what a failed condition means. old is the record that the reply
// shows.
func (q *Sequence[A]) conditionFailed(ctx context.Context, s *Sender, op Operation[A], r Result[A], old protocol.Item) Result[A] {
	r.Item = old
	if old == nil { // there is no record, or the engine does not return it
		item, err := s.Read(context.WithoutCancel(ctx), op.Key)
		if err != nil {
			// The attempt stays in the sequence, as this may be the reply to a second copy
			// of its request, and the first copy may have been applied.
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
