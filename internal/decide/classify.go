package decide

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Effect is a write's effect, as far as an answer proves it.
type Effect int

// Values of Effect.
const (
	Unknown    Effect = iota // the write may have been applied, or may still be
	NotApplied               // the write was not applied, and never will be
	Applied
)

// Cause is the reason why a request did not succeed.
type Cause int

// Values of Cause. The comments say how the client reacts to each.
const (
	None            Cause = iota
	ConditionFailed       // a condition was not met: read the old item in the answer
	Busy                  // throttled, or in conflict with a transaction: retry later
	Refused               // the request itself is wrong, or the caller is not allowed to send it: give up, unless Denied says otherwise
	Unreachable           // no answer, a server error, or an unreadable answer: retry
	Unidentified          // the request had no credentials, or DynamoDB refused them: see After
	Conflict              // conflict between two transactions: retry immediately, with jitter
	GuardFailed           // the guard of a lock failed in a transaction
	WriteFailed           // one of the caller's own writes failed in a transaction
	TokenTaken            // another transaction has used the idempotency token
)

// Reply is a classified answer.
type Reply struct {
	Effect Effect
	Cause  Cause
	Outage bool                            // DynamoDB itself cannot serve the request, because of a server error or throttling
	Old    map[string]types.AttributeValue // old item, set with ConditionFailed; nil if there is none, or if the server does not return it
}

// Classify interprets the error of a request. If it does not know the error, the effect of
// the request is unknown. Such an error may come from a wrapper around the SDK.
func Classify(err error) Reply {
	if err == nil {
		return Reply{Effect: Applied}
	}
	if NotSigned(err) { // check this first: the error of a credential provider may contain an answer from a server other than DynamoDB
		if request := RequestError(err); errors.Is(request, context.Canceled) || errors.Is(request, context.DeadlineExceeded) || ServerSilent(err) && !NoCredentials(err) {
			return Reply{Effect: NotApplied, Cause: Unreachable}
		}
		return Reply{Effect: NotApplied, Cause: Unidentified}
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
			switch {
			case signedAtAWrongTime(err):
				return Reply{Effect: NotApplied, Cause: Unreachable}
			case cause == Unidentified:
				return Reply{Effect: NotApplied, Cause: Unidentified}
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

// Denied reports whether IAM denied a request. A denial may be temporary: an administrator
// may correct the policy, and a new policy takes a while to reach all of DynamoDB. A waiter
// retries a denied request if DynamoDB has answered an earlier request of the same wait.
// Without an earlier answer it gives up, since the policy may never allow the key.
func Denied(err error) bool {
	api, ok := as[smithy.APIError](err)
	return ok && codes[api.ErrorCode()] == denied
}

// CredentialsRefused reports whether AWS refused a request because of the credentials that
// signed it. Such credentials have expired, are unknown, or do not fit the signature.
func CredentialsRefused(err error) bool {
	api, ok := as[smithy.APIError](err)
	return ok && !NotSigned(err) && codes[api.ErrorCode()].cause == Unidentified
}

// Throttled reports whether DynamoDB refused a request, or cancelled a transaction, because
// there were too many requests.
func Throttled(err error) bool { return refusedAs(throttled, err) }

// refusedAs reports whether DynamoDB refused a request, or cancelled a transaction, for a
// reason with meaning m. The cause of m must not be None.
func refusedAs(m meaning, err error) bool {
	if cancelled, ok := as[*types.TransactionCanceledException](err); ok {
		return slices.ContainsFunc(cancelled.CancellationReasons, func(r types.CancellationReason) bool {
			return classifyReason(r).Cause == m.cause
		})
	}
	api, ok := as[smithy.APIError](err)
	return ok && codes[api.ErrorCode()] == m
}

// signedAtAWrongTime reports whether a request was refused because this machine's clock is
// wrong. The SDK has then learned the right time from the answer. It marks the error as
// retryable, and signs the next request with the right time.
func signedAtAWrongTime(err error) bool {
	clock, ok := as[interface{ RetryableError() bool }](err)
	return ok && clock.RetryableError()
}

func status(err error) int {
	if response, ok := as[interface{ HTTPStatusCode() int }](err); ok {
		return response.HTTPStatusCode()
	}
	return 0
}

// After returns the cause to act on. It returns c unless c is Unidentified. accepted
// reports whether DynamoDB has accepted the client's credentials before. If it has, the
// credentials were good and may soon be good again, so the client retries (Unreachable).
// Otherwise the client might wait forever, so it gives up immediately (Refused).
func (c Cause) After(accepted bool) Cause {
	switch {
	case c != Unidentified:
		return c
	case accepted:
		return Unreachable
	}
	return Refused
}

// ServerSilent reports whether a request failed because its server did not answer in time,
// or answered that it is unavailable. The server may be a credential provider's, which may
// start later than this client.
func ServerSilent(err error) bool {
	_, unsent := as[*smithyhttp.RequestSendError](err)
	return unsent || status(err) >= 500 || errors.Is(RequestError(err), context.DeadlineExceeded)
}

// Accepted reports whether DynamoDB has accepted the caller's credentials, as far as err
// shows. err is nil if the request succeeded. A denial does not show it, as the credentials
// may be another caller's. A server error does not show it either, since the server may
// fail before it checks credentials.
func Accepted(err error) bool {
	switch Classify(err).Cause {
	case None, ConditionFailed, Busy:
		return true
	case Refused:
		return Answered(err) && !Denied(err)
	}
	return false
}

// Answered reports whether err is an answer of AWS; nil is the answer of a successful
// request. If Answered returns true, the request was signed.
func Answered(err error) bool {
	_, api := as[smithy.APIError](err)
	return err == nil || api && !NotSigned(err)
}

// NoMetadata is a text in the SDK's error. It means that this machine's metadata service
// has no credentials. The SDK asks that service last, so the error usually means that no
// credentials are configured.
const NoMetadata = "no EC2 IMDS role found"

// NoCredentials reports whether a request was not sent because no credentials are
// configured, as far as the error shows. It returns false if a credential provider could
// not be reached, or refused to give credentials.
func NoCredentials(err error) bool {
	if !NotSigned(err) {
		return false
	}
	if strings.Contains(err.Error(), NoMetadata) {
		return true
	}
	_, refused := as[smithy.APIError](err)
	_, canceled := as[*aws.RequestCanceledError](err)
	return !refused && !canceled && !stepFailed(err, "sign request: ") && !ServerSilent(err)
}

// RequestError returns the error of the SDK's request that err wraps. err may also wrap the
// reason why the wait around that request ended, which RequestError leaves out. If err wraps
// no error of a request, RequestError returns err.
func RequestError(err error) error {
	if request, ok := as[*smithy.OperationError](err); ok {
		return request
	}
	return err
}

// NotSigned reports whether the SDK did not send the request because it could not get
// credentials, or could not sign with the credentials.
func NotSigned(err error) bool {
	if _, ok := as[*v4.SigningError](err); ok {
		return true
	}
	return stepFailed(err, "get identity: ", "sign request: ")
}

// neverSent reports whether the SDK did not send the request because it could not
// build it, or did not know how to authenticate or where to send it.
func neverSent(err error) bool {
	if request, ok := as[*smithy.OperationError](err); !ok || errors.Is(request, context.Canceled) || errors.Is(request, context.DeadlineExceeded) {
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

// stepFailed reports whether an SDK operation failed at one of the given steps. The SDK has
// no error types for these steps, so stepFailed compares the beginning of the error's text
// with the names in steps.
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

// Advice for error messages.
const (
	RaiseCapacity   = "raise the table's capacity, or make it pay per request"
	CheckConnection = "check the network, the region and the endpoint"
	NotDynamoDB     = "the answer is not DynamoDB's: check proxies and the endpoint"
	OtherSchema     = "the table's key does not fit the layout: run leasehold table check"
)

// meaning is the interpretation of an error code.
type meaning struct {
	cause  Cause  // cause of an error with this code; None if the HTTP status decides
	advice string // the problem and its remedy, for error messages
}

var (
	throttled  = meaning{Busy, "throttled: " + RaiseCapacity}
	inConflict = meaning{Conflict, "in conflict with other writes: try again"}
	denied     = meaning{None, "access denied: allow it in the caller's IAM policy (leasehold table policy --prefix PREFIX prints one)"}
	expired    = meaning{Unidentified, "the credentials have expired: renew them"}
	refused    = meaning{Unidentified, "the credentials were refused: check them, the region and this machine's clock"}
)

// codes are the error codes that say more than the status of the answer (DynamoDB API
// reference, "Error handling with DynamoDB").
var codes = map[string]meaning{
	"ProvisionedThroughputExceededException":   throttled,
	"RequestLimitExceeded":                     throttled,
	"ThrottlingException":                      throttled,
	"Throttling":                               throttled,
	"TransactionConflictException":             inConflict,
	"ReplicatedWriteConflictException":         inConflict,
	"AccessDeniedException":                    denied,
	"AccessDenied":                             denied,
	"ExpiredTokenException":                    expired,
	"ExpiredToken":                             expired,
	"RequestExpired":                           expired,
	"UnrecognizedClientException":              refused,
	"InvalidClientTokenId":                     refused,
	"InvalidSignatureException":                refused,
	"IncompleteSignatureException":             refused,
	"IncompleteSignature":                      refused,
	"MissingAuthenticationTokenException":      refused,
	"MissingAuthenticationToken":               refused,
	"ItemCollectionSizeLimitExceededException": {None, "the table has a local secondary index, which is full: use a lock table without one"},
	"LimitExceededException":                   {None, "a limit of the AWS account is reached: try again later, or ask AWS for more"},
	"UnknownError":                             {Unreachable, NotDynamoDB}, // the SDK's code for an answer without an error code
}

// Advice returns text for error messages about a request that DynamoDB has refused: what is
// wrong, and what to do. It returns "" if DynamoDB's own text says enough.
func Advice(err error) string {
	switch api, ok := as[smithy.APIError](err); {
	case Throttled(err):
		return throttled.advice
	case refusedAs(inConflict, err):
		return inConflict.advice
	case !ok:
		return ""
	case strings.HasPrefix(api.ErrorMessage(), "KMS "):
		return "the KMS key that encrypts the table cannot be used: enable it, and allow its use in the key's policy"
	case codes[api.ErrorCode()].advice != "":
		return codes[api.ErrorCode()].advice
	case api.ErrorCode() == "ValidationException" && strings.Contains(api.ErrorMessage(), "schema"):
		return OtherSchema
	case Classify(err).Outage:
		return "DynamoDB has failed: try again later"
	}
	return ""
}
