package decide

import (
	"cmp"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// CommitReply is the meaning of the answer to a commit, which is a transaction that writes the
// caller's items. The last items of the transaction are its guards. A guard is a condition check
// that fails if a lock is no longer held.
type CommitReply struct {
	Effect Effect
	Cause  Cause
	Writes []types.CancellationReason // one reason for each item that is not a guard; set only with WriteFailed

	// Failed contains the items of the failed guards. The map's keys are positions in the list of
	// guards. An item is nil if it does not exist, or if the answer does not contain it. Failed is
	// empty unless Cause is GuardFailed.
	Failed map[int]map[string]types.AttributeValue
}

// ClassifyCommit returns the meaning of err, the error of a commit. The parameter "items" is the
// number of items in the transaction. The parameter "guards" is the number of guards, which are the
// last of these items.
func ClassifyCommit(err error, items, guards int) CommitReply {
	if cancelled, ok := as[*types.TransactionCanceledException](err); ok {
		return cancelledBy(cancelled.CancellationReasons, items, guards)
	}
	if api, ok := as[smithy.APIError](err); ok {
		switch api.ErrorCode() {
		case "TransactionInProgressException":
			// Another request with the same idempotency token is in flight.
			return CommitReply{Effect: Unknown, Cause: Busy}
		case "IdempotentParameterMismatchException":
			return CommitReply{Effect: NotApplied, Cause: TokenTaken}
		}
	}
	r := Classify(err)
	return CommitReply{Effect: r.Effect, Cause: r.Cause}
}

// cancelledBy returns the meaning of the reasons why a commit was cancelled (DynamoDB API
// reference, TransactWriteItems, "Cancellation Reasons"). If the reasons differ, the first in this
// order counts: GuardFailed, Refused (for a guard), WriteFailed, Busy. A cancelled transaction has
// written nothing.
func cancelledBy(reasons []types.CancellationReason, items, guards int) CommitReply {
	t := CommitReply{Effect: NotApplied, Cause: Refused, Failed: map[int]map[string]types.AttributeValue{}}
	if len(reasons) != items {
		return t // the cause stays Refused, as the reasons cannot be matched with the items
	}
	worst := None
	for i, r := range reasons {
		guard := i - (items - guards)
		switch cause := reasonCause(r); {
		case cause == None:
		case guard >= 0 && cause == ConditionFailed:
			worst = GuardFailed
			t.Failed[guard] = r.Item
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
	case None: // DynamoDB has cancelled the transaction, but no item has a reason
		return t
	case WriteFailed:
		t.Writes = reasons[:items-guards]
	}
	t.Cause = worst
	return t
}

// Stage is the stage of a commit. All requests of a commit have the same idempotency token.
type Stage int

// Values of Stage.
const (
	Sending   Stage = iota // the client sends the transaction, repeatedly if it gets no answer
	Voiding                // the client sends a transaction of only the guards: if DynamoDB applies it, the token is used, so the caller's writes can never be applied
	Rereading              // the token was used already: the client sends the first transaction again, to find out whether it was applied
)

// Course is the state of a commit after the answer to one of its requests.
type Course struct {
	Stage      Stage
	Unanswered bool // a request of the commit has had no answer, so its writes may have been applied, or may still be applied
	Trusted    bool // the holder still trusts the locks
	Stopped    bool // the caller's context has ended, the client is closing, or the idempotency token is too old
}

// Step is the next step of a commit.
type Step int

// Values of Step. Committed and all later values end the commit.
const (
	Again     Step = iota // send the same request again
	Void                  // go to stage Voiding, and send its request
	Reread                // go to stage Rereading, and send its request
	Committed             // the writes have been applied exactly once
	NotHeld               // the guard of a lock failed: the writes were not applied, and never will be
	Cancelled             // one of the caller's writes failed: none was applied, and none ever will be
	Rejected              // the request itself is wrong, or the caller may not send it
	GiveUp                // the client may send no more requests, and none was applied
	Doubtful              // the outcome is unknown: the writes may have been applied, or may still be applied
)

// NextCommit returns the next step of a commit after the answer t to one of its requests.
// It relies on three facts:
//
//   - If DynamoDB has applied a transaction, a later request with the same idempotency
//     token succeeds and writes nothing, even if a condition would now fail.
//   - A token that one transaction has used cannot be used by another transaction.
//   - If the guard of a lock has failed once, that guard fails forever.
//
// The DynamoDB API reference states the first two facts, under ClientRequestToken.
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

// ReadCause returns the cause of err, the error of a read of one or more items. If DynamoDB has
// cancelled a transaction of reads, the gravest cause among the items determines the result.
func ReadCause(err error) Cause {
	if cancelled, ok := as[*types.TransactionCanceledException](err); ok {
		worst := None
		for _, r := range cancelled.CancellationReasons {
			if cause := reasonCause(r); gravity[cause] > gravity[worst] {
				worst = cause
			}
		}
		return cmp.Or(worst, Busy) // if no item has a reason, the transaction may succeed later
	}
	return Classify(err).Cause
}

// gravity orders the causes of a cancelled transaction. A higher number is graver. Temporary causes
// have the lowest numbers. A failed condition is graver, and a request that can never succeed is
// the gravest.
var gravity = map[Cause]int{None: 0, Busy: 1, Conflict: 2, ConditionFailed: 3, Refused: 4}

// reasonCause translates the cancellation reason of one item of a transaction to a Cause (DynamoDB
// API reference, "TransactionCanceledException"). It returns None if the item was no reason to
// cancel the transaction. For an unknown code it returns Refused, so that the client does not
// retry.
func reasonCause(r types.CancellationReason) Cause {
	switch aws.ToString(r.Code) {
	case "", "None":
		return None
	case "ConditionalCheckFailed":
		return ConditionFailed
	case "TransactionConflict":
		return Conflict
	case "ProvisionedThroughputExceeded", "ThrottlingError", "RequestLimitExceeded":
		return Busy
	}
	return Refused
}
