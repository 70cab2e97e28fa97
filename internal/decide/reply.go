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

// Effect says whether a write was applied, as far as its answer tells.
type Effect int

// Values of Effect.
const (
	Unknown    Effect = iota // the write may have been applied, or may still be
	NotApplied               // it was not applied, and never will be
	Applied
)

// Cause says why a request did not succeed.
type Cause int

// Values of Cause, with what to do about it.
const (
	None            Cause = iota
	ConditionFailed       // read the old item in the answer
	Busy                  // throttled, or in conflict with a transaction: retry later
	Refused               // the request itself is wrong or not allowed: give up
	Unreachable           // no answer, a server error, or an unreadable answer: retry
	Unsigned              // there were no credentials: see After
	Conflict              // of two transactions: retry immediately, with jitter
	GuardFailed           // the guard of a lock failed in a transaction
	WriteFailed           // one of the caller's own writes failed in a transaction
	TokenTaken            // another transaction has used the idempotency token
)

// Reply is a classified answer.
type Reply struct {
	Effect Effect
	Cause  Cause
	Outage bool                            // DynamoDB itself cannot serve the request: a server error, or throttling
	Old    map[string]types.AttributeValue // with ConditionFailed; nil: no item, or the server does not return it
}

// Classify says what the error of a request means. An error that it does not know
// has an unknown effect: a wrapper around the SDK may have its own errors.
func Classify(err error) Reply {
	if err == nil {
		return Reply{Effect: Applied}
	}
	if NotSigned(err) { // first: the credential provider's error may contain an answer of its own server, not of DynamoDB
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return Reply{Effect: NotApplied, Cause: Unreachable}
		}
		return Reply{Effect: NotApplied, Cause: Unsigned}
	}
	if failed, ok := as[*types.ConditionalCheckFailedException](err); ok {
		return Reply{Effect: NotApplied, Cause: ConditionFailed, Old: failed.Item}
	}
	if api, ok := as[smithy.APIError](err); ok {
		switch cause := codes[api.ErrorCode()].cause; {
		case cause == Busy, cause == Conflict:
			return Reply{Effect: NotApplied, Cause: Busy, Outage: cause == Busy}
		case cause == Unreachable:
			return Reply{Effect: Unknown, Cause: Unreachable}
		case status(err) >= 400 && status(err) < 500, status(err) == 0 && api.ErrorFault() == smithy.FaultClient:
			if signedAtAWrongTime(err) {
				return Reply{Effect: NotApplied, Cause: Unreachable}
			}
			return Reply{Effect: NotApplied, Cause: Refused}
		}
		return Reply{Effect: Unknown, Cause: Unreachable, Outage: status(err) >= 500 || api.ErrorFault() == smithy.FaultServer}
	}
	if neverSent(err) {
		return Reply{Effect: NotApplied, Cause: Refused}
	}
	return Reply{Effect: Unknown, Cause: Unreachable}
}

// Denied reports whether IAM denied a request.
func Denied(err error) bool {
	api, ok := as[smithy.APIError](err)
	return ok && codes[api.ErrorCode()] == denied
}

// Throttled reports whether DynamoDB refused a request, or cancelled a transaction,
// because there were too many.
func Throttled(err error) bool { return refusedAs(throttled, err) }

// refusedAs reports whether DynamoDB refused a request, or cancelled a transaction, with
// that meaning, which has a cause.
func refusedAs(m meaning, err error) bool {
	if cancelled, ok := as[*types.TransactionCanceledException](err); ok {
		return slices.ContainsFunc(cancelled.CancellationReasons, func(r types.CancellationReason) bool {
			return classifyReason(r).Cause == m.cause
		})
	}
	api, ok := as[smithy.APIError](err)
	return ok && codes[api.ErrorCode()] == m
}

// signedAtAWrongTime reports of a refusal whether it is of a signature because this
// machine's clock is wrong, and the SDK has learned from the answer what time it is:
// it signs the next request by that. It says so by calling the error retryable.
func signedAtAWrongTime(err error) bool {
	clock, ok := as[interface{ RetryableError() bool }](err)
	return ok && clock.RetryableError()
}

func status(err error) int {
	if response, ok := as[*smithyhttp.ResponseError](err); ok {
		return response.HTTPStatusCode()
	}
	return 0
}

// After turns Unsigned into another cause. A client that has had an answer before
// has had credentials: their absence may pass, so it retries. A client that never
// had one might wait forever, so it gives up immediately.
func (c Cause) After(answered bool) Cause {
	switch {
	case c != Unsigned:
		return c
	case answered:
		return Unreachable
	}
	return Refused
}

// Answered reports whether err, nil for success, is an answer of DynamoDB. Then
// the request had been signed.
func Answered(err error) bool {
	_, api := as[smithy.APIError](err)
	return err == nil || api && !NotSigned(err)
}

// NoCredentials reports whether a request was not sent because no credentials are
// configured, as far as the error tells. It is false if the credential provider
// could not be reached, or refused.
func NoCredentials(err error) bool {
	if !NotSigned(err) {
		return false
	}
	if strings.Contains(err.Error(), "no EC2 IMDS role found") { // the last provider that the SDK tries by default
		return true
	}
	_, refused := as[smithy.APIError](err)
	_, unsent := as[*smithyhttp.RequestSendError](err)
	_, canceled := as[*aws.RequestCanceledError](err)
	return !refused && !unsent && !canceled && !stepFailed(err, "sign request: ") && !errors.Is(err, context.DeadlineExceeded)
}

// NotSigned reports whether the SDK did not send the request because it could not
// get credentials, or could not sign with them.
func NotSigned(err error) bool {
	if _, ok := as[*v4.SigningError](err); ok {
		return true
	}
	return stepFailed(err, "get identity: ", "sign request: ")
}

// neverSent reports whether the SDK did not send the request because it could not
// build it, or did not know how to authenticate or where to send it.
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

// stepFailed reports whether an SDK operation failed at one of these steps. They
// have no error types, so it compares texts.
func stepFailed(err error, steps ...string) bool {
	op, ok := as[*smithy.OperationError](err)
	if !ok {
		return false
	}
	text := op.Unwrap().Error()
	return slices.ContainsFunc(steps, func(step string) bool { return strings.HasPrefix(text, step) })
}

func as[E any](err error) (E, bool) {
	var target E
	ok := errors.As(err, &target)
	return target, ok
}
