package decide

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Transaction is a classified reply to a TransactWriteItems request.
type Transaction struct {
	Effect  Effect
	Cause   Cause    // the gravest of the reasons, or of the request as a whole
	Reasons []Reason // one per item, in the order sent; nil unless the reply names them
}

// Reason is what cancelled a transaction, as far as one of its items is
// concerned. Its cause is None for an item that did not.
type Reason struct {
	Cause Cause
	Old   map[string]types.AttributeValue // with ConditionFailed; nil: no item, or none was asked for
}

// ClassifyTransaction says what the error of a TransactWriteItems request
// means. One that was cancelled has written nothing.
func ClassifyTransaction(err error) Transaction {
	if cancelled, ok := as[*types.TransactionCanceledException](err); ok {
		t := Transaction{Effect: NotApplied, Cause: Busy} // one without reasons may go through later
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
		// A copy of this very request is under way; nobody else has its token.
		return Transaction{Effect: Unknown, Cause: Unreachable}
	}
	r := Classify(err)
	return Transaction{Effect: r.Effect, Cause: r.Cause}
}

// gravity orders the causes of one cancellation: what will never go through
// comes before what has been decided, and that before what may pass.
var gravity = map[Cause]int{None: 0, Busy: 1, Conflict: 2, ConditionFailed: 3, Refused: 4}

// classifyReason goes by the codes that TransactWriteItems lists (DynamoDB API
// reference, "TransactionCanceledException"). What it does not know will not
// pass by being repeated.
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
