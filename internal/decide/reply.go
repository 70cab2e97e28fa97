package decide

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
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
	Unsigned              // there were no credentials for it: see After
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
	if NotSigned(err) { // first: what the provider was told by a server of its own is not DynamoDB's word
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return Reply{Effect: NotApplied, Cause: Unreachable}
		}
		return Reply{Effect: NotApplied, Cause: Unsigned}
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

// After is the cause by what is known of the client. One that has had an answer
// before has had credentials: being without them will pass. One that never had
// may wait for them for ever, and is told so at once.
func (c Cause) After(answered bool) Cause {
	switch {
	case c != Unsigned:
		return c
	case answered:
		return Unreachable
	}
	return Refused
}

// Answered reports whether err, nil for success, is DynamoDB's answer to a
// request, which then had been signed.
func Answered(err error) bool {
	_, api := as[smithy.APIError](err)
	return err == nil || api && !NotSigned(err)
}

// NoCredentials reports whether a request was not sent because there are no
// credentials at all, as far as an error tells, and not because those who give
// them could not be asked or refused.
func NoCredentials(err error) bool {
	if !NotSigned(err) {
		return false
	}
	if strings.Contains(err.Error(), "no EC2 IMDS role found") { // the last that the SDK asks by default
		return true
	}
	_, refused := as[smithy.APIError](err)
	_, unsent := as[*smithyhttp.RequestSendError](err)
	_, canceled := as[*aws.RequestCanceledError](err)
	return !refused && !unsent && !canceled && !stepFailed(err, "sign request: ") && !errors.Is(err, context.DeadlineExceeded)
}

// NotSigned reports whether the SDK gave up before the request left, because it
// could not get credentials or not sign with them.
func NotSigned(err error) bool {
	if _, ok := as[*v4.SigningError](err); ok {
		return true
	}
	return stepFailed(err, "get identity: ", "sign request: ")
}

// neverSent reports whether the SDK gave up before the request left: it could
// not build it, or was not told how to authenticate or whom to send it to.
func neverSent(err error) bool {
	if _, ok := as[*smithy.OperationError](err); !ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	if _, sent := as[*smithyhttp.RequestSendError](err); sent {
		return false
	}
	if _, ok := as[*smithy.SerializationError](err); ok {
		return true
	}
	return stepFailed(err, "resolve auth scheme: ", "failed to resolve service endpoint")
}

// stepFailed reports whether an operation of the SDK failed at one of these
// steps, which have no error types of their own.
func stepFailed(err error, steps ...string) bool {
	op, ok := as[*smithy.OperationError](err)
	if !ok {
		return false
	}
	text := op.Unwrap().Error()
	return slices.ContainsFunc(steps, func(step string) bool { return strings.HasPrefix(text, step) })
}

func as[E error](err error) (E, bool) {
	var target E
	ok := errors.As(err, &target)
	return target, ok
}
