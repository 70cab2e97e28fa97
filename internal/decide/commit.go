package decide

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// CommitReply is a classified answer to a transaction whose last items are the guards of
// locks.
type CommitReply struct {
	Effect  Effect
	Cause   Cause
	Reasons []types.CancellationReason // reasons of all items; set only with GuardFailed and WriteFailed
	Failed  []int                      // indexes of the failed guards among the guards; set only with GuardFailed
}

// ClassifyCommit interprets the error of a transaction with the given number of items. The
// last items are the guards; the parameter guards is their number.
func ClassifyCommit(err error, items, guards int) CommitReply {
	if cancelled, ok := as[*types.TransactionCanceledException](err); ok {
		return cancelledBy(cancelled.CancellationReasons, items, guards)
	}
	if api, ok := as[smithy.APIError](err); ok {
		switch api.ErrorCode() {
		case "TransactionInProgressException":
			// Another request with the same token is in flight.
			return CommitReply{Effect: Unknown, Cause: Busy}
		case "IdempotentParameterMismatchException":
			return CommitReply{Effect: NotApplied, Cause: TokenTaken}
		}
	}
	r := Classify(err)
	return CommitReply{Effect: r.Effect, Cause: r.Cause}
}

// cancelledBy interprets the reasons why a transaction was cancelled (DynamoDB API
// reference, TransactWriteItems, "Cancellation Reasons"). If items have different reasons,
// the worst one decides. A cancelled transaction has written nothing.
func cancelledBy(reasons []types.CancellationReason, items, guards int) CommitReply {
	t := CommitReply{Effect: NotApplied, Cause: Refused}
	if len(reasons) != items {
		return t // refused, as the reasons cannot be matched to the items
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
	case None: // no item has a reason, although the transaction was cancelled
		return t
	case GuardFailed, WriteFailed:
		t.Reasons = reasons
	}
	t.Cause = worst
	return t
}

// Stage is the stage of a commit. All its requests have the same idempotency
// token.
type Stage int

// Values of Stage.
const (
	Sending   Stage = iota // the transaction is sent repeatedly until it is answered
	Voiding                // only the guards are sent: if they use up the token, the transaction can never be applied
	Rereading              // the token was used already: the transaction is sent again, to find out whether it was applied
)

// Course is the state of a commit when one of its requests has been answered.
type Course struct {
	Stage      Stage
	Unanswered bool // a request has had no answer, so its writes may have been applied or may still be applied
	Trusted    bool // the lock is still trusted
	Stopped    bool // the caller's context has ended, the client is closing, or the token is too old
}

// Step is the next step of a commit.
type Step int

// Values of Step. Committed and all later values end the commit.
const (
	Again     Step = iota // send the same request again
	Void                  // go to stage Voiding
	Reread                // go to stage Rereading
	Committed             // the writes have been applied exactly once
	NotHeld               // a guard failed: nothing was written, and nothing will be
	Cancelled             // one of the writes failed: nothing was written, and nothing will be
	Rejected              // the request itself is wrong or not allowed
	GiveUp                // DynamoDB was busy until no time was left
	Doubtful              // the writes may have been applied, or may still be
)

// NextCommit returns what to do after an answer to a request of a commit. It
// relies on three facts:
//
//   - A repeated request whose token has been applied succeeds and writes
//     nothing, whatever its conditions say by now.
//   - A token that one transaction has used cannot be used by another.
//   - A guard that has failed once fails forever.
//
// The first two are from the DynamoDB API reference, ClientRequestToken.
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
