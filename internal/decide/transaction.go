package decide

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Transaction is a classified answer to a TransactWriteItems request.
type Transaction struct {
	Effect  Effect
	Cause   Cause    // the gravest cause among the items; if the request failed as a whole, the cause of that failure
	Reasons []Reason // reasons of all items, in the order sent; nil if the answer has none
}

// Reason says why one item cancelled a transaction. Cause is None if the item did not
// cancel the transaction.
type Reason struct {
	Cause Cause
	Old   map[string]types.AttributeValue // the old item, set with ConditionFailed; nil if no item exists, or if the request did not ask for the old item
}

// ClassifyTransaction interprets the error of a TransactWriteItems request. A
// cancelled transaction has written nothing.
func ClassifyTransaction(err error) Transaction {
	if cancelled, ok := as[*types.TransactionCanceledException](err); ok {
		t := Transaction{Effect: NotApplied, Cause: Busy} // if the answer has no reasons, the transaction may succeed later
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
		// No other request has this token, so the request in progress is an earlier copy of
		// this one.
		return Transaction{Effect: Unknown, Cause: Unreachable}
	}
	r := Classify(err)
	return Transaction{Effect: r.Effect, Cause: r.Cause}
}

// gravity orders the causes of a cancellation. The worst is a request that can never
// succeed, then a failed condition, then causes that may pass.
var gravity = map[Cause]int{None: 0, Busy: 1, Conflict: 2, ConditionFailed: 3, Refused: 4}

// classifyReason interprets a code of TransactWriteItems (DynamoDB API reference,
// "TransactionCanceledException"). An unknown code is not retried.
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
