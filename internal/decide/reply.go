package decide

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Effect is what a reply says of the write it answers.
type Effect int

// The three kinds of answer.
const (
	Unknown    Effect = iota // the write may or may not have landed, or may yet
	NotApplied               // it has not landed and will not
	Applied
)

// Cause is why a request was not answered with success.
type Cause int

// The causes, by what is to be done about them.
const (
	None            Cause = iota
	ConditionFailed       // look at the old item
	Busy                  // throttled or in conflict with a transaction: later
	Refused               // the request itself is wrong or not allowed: give up
	Unreachable           // no reply, a server error, or one that cannot be read: again
	Conflict              // of a transaction with another: again at once, with jitter
	GuardFailed           // the condition of a lock's guard in a transaction
	WriteFailed           // one of the caller's own writes in a transaction
	TokenTaken            // another transaction has used the idempotency token
)

// Reply is a classified reply.
type Reply struct {
	Effect Effect
	Cause  Cause
	Outage bool                            // DynamoDB itself says that it cannot: a server error, or throttling
	Old    map[string]types.AttributeValue // with ConditionFailed; nil: no item, or an engine that returns none
}

// Classify says what the error of a request means. Whatever it does not know
// is an unknown effect: a wrapper around the SDK may return errors of its own.
func Classify(err error) Reply {
	if err == nil {
		return Reply{Effect: Applied}
	}
	if failed, ok := as[*types.ConditionalCheckFailedException](err); ok {
		return Reply{Effect: NotApplied, Cause: ConditionFailed, Old: failed.Item}
	}
	if api, ok := as[smithy.APIError](err); ok {
		switch {
		case busy[api.ErrorCode()]:
			return Reply{Effect: NotApplied, Cause: Busy, Outage: !conflict[api.ErrorCode()]}
		case api.ErrorCode() == "UnknownError": // the SDK's name for a reply that is not DynamoDB's, a proxy's for one
			return Reply{Effect: Unknown, Cause: Unreachable}
		case status(err) >= 400 && status(err) < 500, status(err) == 0 && api.ErrorFault() == smithy.FaultClient:
			return Reply{Effect: NotApplied, Cause: Refused}
		}
		return Reply{Effect: Unknown, Cause: Unreachable, Outage: status(err) >= 500 || api.ErrorFault() == smithy.FaultServer}
	}
	if neverSent(err) {
		return Reply{Effect: NotApplied, Cause: Refused}
	}
	return Reply{Effect: Unknown, Cause: Unreachable}
}

// busy lists the error codes that mean "not now" (DynamoDB API reference,
// "Error handling with DynamoDB").
var busy = map[string]bool{
	"ProvisionedThroughputExceededException": true,
	"RequestLimitExceeded":                   true,
	"ThrottlingException":                    true,
	"Throttling":                             true,
	"TransactionConflictException":           true,
	"ReplicatedWriteConflictException":       true,
}

// conflict lists those of them that say another write is under way.
var conflict = map[string]bool{
	"TransactionConflictException":     true,
	"ReplicatedWriteConflictException": true,
}

func status(err error) int {
	if response, ok := as[*smithyhttp.ResponseError](err); ok {
		return response.HTTPStatusCode()
	}
	return 0
}

// neverSent reports whether the SDK gave up before the request left: it could
// not build it, find credentials for it or sign it.
func neverSent(err error) bool {
	op, ok := as[*smithy.OperationError](err)
	if !ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	if _, sent := as[*smithyhttp.RequestSendError](err); sent {
		return false
	}
	if _, ok := as[*smithy.SerializationError](err); ok {
		return true
	}
	if _, ok := as[*v4.SigningError](err); ok {
		return true
	}
	// The SDK gives these steps no type of their own.
	for _, step := range []string{"get identity: ", "resolve auth scheme: ", "failed to resolve service endpoint"} {
		if strings.HasPrefix(op.Unwrap().Error(), step) {
			return true
		}
	}
	return false
}

func as[E error](err error) (E, bool) {
	var target E
	ok := errors.As(err, &target)
	return target, ok
}
