package decide

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Transaction is the meaning of the answer to a TransactWriteItems request.
type Transaction struct {
	Effect  Effect
	Cause   Cause    // the gravest cause among the items, or the cause of an error of the whole request
	Reasons []Reason // cancellation reasons of all items, in their order; nil if the answer contains no reasons
}

// Reason is the meaning of DynamoDB's cancellation reason for one item of a transaction.
// Cause is None if the item was no reason to cancel the transaction.
type Reason struct {
	Cause Cause
	Old   map[string]types.AttributeValue // item in the table, set only with ConditionFailed; nil if no item exists, or if the request did not ask for it
}

// ClassifyTransaction returns the meaning of err, the error of a TransactWriteItems
// request. A cancelled transaction has written nothing.
func ClassifyTransaction(err error) Transaction {
	if cancelled, ok := as[*types.TransactionCanceledException](err); ok {
		// If the answer contains no reasons, the cause is Busy, as the transaction may succeed
		// later.
		t := Transaction{Effect: NotApplied, Cause: Busy}
		for i, r := range cancelled.CancellationReasons {
			reason := classifyReason(r)
			t.Reasons = append(t.Reasons, reason)
			if i == 0 || gravity[reason.Cause] > gravity[t.Cause] {
				t.Cause = reason.Cause
			}
		}
		if t.Cause == None {
			t.Cause = Busy
		}
		return t
	}
	if _, ok := as[*types.TransactionInProgressException](err); ok {
		// No other request has the idempotency token of this request. So DynamoDB is still
		// processing an earlier copy of it.
		return Transaction{Effect: Unknown, Cause: Unreachable}
	}
	r := Classify(err)
	return Transaction{Effect: r.Effect, Cause: r.Cause}
}

// gravity orders the causes of a cancelled transaction; a higher number is graver. The
// gravest is a request that can never succeed, then a failed condition, and then causes
// that are temporary.
var gravity = map[Cause]int{None: 0, Busy: 1, Conflict: 2, ConditionFailed: 3, Refused: 4}

// classifyReason returns the meaning of a cancellation reason (DynamoDB API reference,
// "TransactionCanceledException"). It returns Refused for an unknown code, so that the
// client does not retry.
func classifyReason(r types.CancellationReason) Reason {
	switch aws.ToString(r.Code) {
	case "", "None":
		return Reason{}
	case "ConditionalCheckFailed":
		return Reason{Cause: ConditionFailed, Old: r.Item}
	case "TransactionConflict":
		return Reason{Cause: Conflict}
	case "ProvisionedThroughputExceeded", "ThrottlingError", "RequestLimitExceeded":
		return Reason{Cause: Busy}
	}
	return Reason{Cause: Refused}
}
