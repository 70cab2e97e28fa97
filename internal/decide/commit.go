package decide

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// CommitReply is a classified reply to a transaction whose last items are
// guards of locks.
type CommitReply struct {
	Effect  Effect
	Cause   Cause
	Reasons []types.CancellationReason // one for each item, with GuardFailed and WriteFailed
	Failed  []int                      // with GuardFailed: which of the guards, from 0
}

// ClassifyCommit says what the error of a transaction of that many items
// means, of which the last ones are guards.
func ClassifyCommit(err error, items, guards int) CommitReply {
	if cancelled, ok := as[*types.TransactionCanceledException](err); ok {
		return cancelledBy(cancelled.CancellationReasons, items, guards)
	}
	if api, ok := as[smithy.APIError](err); ok {
		switch api.ErrorCode() {
		case "TransactionInProgressException":
			// Something under this token is being carried out.
			return CommitReply{Effect: Unknown, Cause: Busy}
		case "IdempotentParameterMismatchException":
			return CommitReply{Effect: NotApplied, Cause: TokenTaken}
		}
	}
	r := Classify(err)
	return CommitReply{Effect: r.Effect, Cause: r.Cause}
}

// cancelledBy looks for the worst of the reasons (DynamoDB API reference,
// TransactWriteItems, "Cancellation Reasons"). A cancelled transaction has
// written nothing, whatever the reason.
func cancelledBy(reasons []types.CancellationReason, items, guards int) CommitReply {
	t := CommitReply{Effect: NotApplied, Cause: Refused}
	if len(reasons) != items {
		return t // whose reasons these are cannot be told
	}
	worst := None
	for i, r := range reasons {
		guard := i - (items - guards)
		switch cause := classifyReason(r).Cause; {
		case cause == None:
		case guard >= 0 && cause == ConditionFailed:
			worst = GuardFailed
			t.Failed = append(t.Failed, guard)
		case cause == Busy, cause == Conflict:
			if worst == None {
				worst = Busy
			}
		case worst == GuardFailed:
		case guard >= 0:
			worst = Refused
		case worst != Refused:
			worst = WriteFailed
		}
	}
	switch worst {
	case None: // cancelled for nothing that is told
		return t
	case GuardFailed, WriteFailed:
		t.Reasons = reasons
	}
	t.Cause = worst
	return t
}

// Stage is how far a commit has come. All its requests carry one token.
type Stage int

// The stages.
const (
	Sending   Stage = iota // the transaction is sent, until it is answered
	Voiding                // the guards alone are sent in its place: should they get the token, it can never land
	Rereading              // they did not get it: the transaction is sent again to learn whether it has
)

// Course is where a commit stands when a request of its has been answered.
type Course struct {
	Stage      Stage
	Unanswered bool // a request has had no answer: it may have been applied, or may be yet
	Trusted    bool // the lock is
	Stopped    bool // the caller has left, the client closes, or the token grows old
}

// Step is what a commit does next.
type Step int

// The steps of a commit.
const (
	Again     Step = iota // the same request
	Void                  // go on to Voiding
	Reread                // go on to Rereading
	Committed             // over: the writes have landed, once
	NotHeld               // over: a guard failed. Nothing was written, nor will be
	Cancelled             // over: one of the writes failed. Nothing was written, nor will be
	Rejected              // over: the request itself is wrong or not allowed
	GiveUp                // over: only busy answers, and no time left
	Doubtful              // over: the writes may have landed, or may yet
)

// NextCommit says what follows from the answer to a request of a commit. It
// rests on three things. A request repeated under the token of one that landed
// succeeds and writes nothing, whatever its conditions say by now. A token that
// one transaction has used refuses another (both: DynamoDB API reference,
// ClientRequestToken). A guard that failed fails for ever.
func NextCommit(t CommitReply, c Course) Step {
	switch t.Cause {
	case None:
		if c.Stage == Voiding {
			return Cancelled
		}
		return Committed
	case GuardFailed:
		return NotHeld
	case Busy, Unreachable:
		switch {
		case c.Stopped && c.Unanswered:
			return Doubtful
		case c.Stopped, !c.Trusted && !c.Unanswered:
			return GiveUp
		}
		return Again
	case WriteFailed:
		switch {
		case !c.Unanswered:
			return Cancelled
		case c.Stage != Sending || c.Stopped:
			return Doubtful
		}
		return Void
	case TokenTaken:
		if c.Stage == Voiding && !c.Stopped {
			return Reread
		}
	}
	if c.Unanswered {
		return Doubtful
	}
	return Rejected
}
