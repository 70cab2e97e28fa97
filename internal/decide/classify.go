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

// Effect says whether a write has changed the table, as far as the answer to its request proves it.
type Effect int

// Values of Effect.
const (
	Unknown    Effect = iota // the write may have been applied, or may still be applied later
	NotApplied               // the write was not applied, and never will be applied
	Applied
)

// Cause is the reason why a request did not succeed.
type Cause int

// Values of Cause. Each comment says what the value means and, after a colon, what the
// client does.
const (
	None            Cause = iota
	ConditionFailed       // the condition of the write was false: read the old item in the answer
	Busy                  // the request was throttled, or was in conflict with a transaction: retry later
	Refused               // the request itself is wrong, or the caller may not send it: give up; a waiter may retry if Denied returns true
	Unreachable           // the request had no answer, a server error, or an unreadable answer: retry
	Unidentified          // the request had no credentials, or DynamoDB refused them: call After
	Conflict              // the transaction was in conflict with another transaction: retry immediately, with jitter
	GuardFailed           // in a commit, the guard of a lock failed; see CommitReply
	WriteFailed           // in a commit, one of the caller's own writes failed; see CommitReply
	TokenTaken            // in a commit, another transaction has used the idempotency token; see CommitReply
)

// Reply describes the result of a request: the answer and its meaning, or that no answer came.
type Reply struct {
	Effect Effect
	Cause  Cause
	Outage bool                            // DynamoDB could not serve the request, because of a server error or throttling
	Item   map[string]types.AttributeValue // the item after an applied update, or the item for which the condition failed; nil if no item exists, or if the server did not return it
	Err    error
}

// Classify returns the meaning of err, the error of a request to DynamoDB. The effect of an
// unrecognized error, for example from a wrapper around the AWS SDK, is Unknown. The field Err is
// not set. Item is set only if a condition failed.
func Classify(err error) Reply {
	if err == nil {
		return Reply{Effect: Applied}
	}
	// Check this first: a credential provider's error may contain another server's answer, which
	// the code below would take for DynamoDB's.
	if NotSigned(err) {
		if request := RequestError(err); errors.Is(request, context.Canceled) || errors.Is(request, context.DeadlineExceeded) || ServerSilent(err) && !NoCredentials(err) {
			return Reply{Effect: NotApplied, Cause: Unreachable}
		}
		return Reply{Effect: NotApplied, Cause: Unidentified}
	}
	if failed, ok := as[*types.ConditionalCheckFailedException](err); ok {
		return Reply{Effect: NotApplied, Cause: ConditionFailed, Item: failed.Item}
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

// Denied reports whether err means that an IAM policy denied a request. A denial may be temporary:
// an administrator may correct the policy, and a new policy takes a while to reach all of DynamoDB.
func Denied(err error) bool {
	api, ok := as[smithy.APIError](err)
	return ok && codes[api.ErrorCode()] == denied
}

// CredentialsRefused reports whether err means that AWS refused the credentials of a request, for
// example because they have expired.
func CredentialsRefused(err error) bool {
	api, ok := as[smithy.APIError](err)
	return ok && !NotSigned(err) && codes[api.ErrorCode()].cause == Unidentified
}

// Throttled reports whether err means that DynamoDB refused a request, or cancelled a
// transaction, because there were too many requests.
func Throttled(err error) bool { return refusedAs(throttled, err) }

// refusedAs reports whether err has an error code whose meaning is m. For a cancelled transaction,
// it reports whether at least one item has a reason with the cause m.cause. The caller must not
// pass a meaning with the cause None.
func refusedAs(m meaning, err error) bool {
	if cancelled, ok := as[*types.TransactionCanceledException](err); ok {
		return slices.ContainsFunc(cancelled.CancellationReasons, func(r types.CancellationReason) bool {
			return reasonCause(r) == m.cause
		})
	}
	api, ok := as[smithy.APIError](err)
	return ok && codes[api.ErrorCode()] == m
}

// signedAtAWrongTime reports whether err means that AWS refused a request because this machine's
// clock is wrong. The SDK marks such an error as retryable: it has read the right time from the
// answer, and signs the next request with that time.
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

// After returns the cause that decides what the client does next. Unidentified becomes Unreachable
// if DynamoDB has accepted the client's credentials before: valid ones may soon be available again.
// Otherwise it becomes Refused, so that the client does not wait forever.
func (c Cause) After(accepted bool) Cause {
	switch {
	case c != Unidentified:
		return c
	case accepted:
		return Unreachable
	}
	return Refused
}

// ServerSilent reports whether err means that the server of a request did not answer in time, or
// answered with a server error. The server is DynamoDB, or belongs to a credential provider and may
// not have started yet.
func ServerSilent(err error) bool {
	_, unsent := as[*smithyhttp.RequestSendError](err)
	return unsent || status(err) >= 500 || errors.Is(RequestError(err), context.DeadlineExceeded)
}

// Accepted reports whether err, the result of a request, proves that the caller has the right
// credentials. A denial by IAM is no proof: the credentials may belong to the wrong identity. A
// server error is no proof: the server may fail before it checks the credentials.
func Accepted(err error) bool {
	switch Classify(err).Cause {
	case None, ConditionFailed, Busy:
		return true
	case Refused:
		_, answered := as[smithy.APIError](err) // the SDK may have sent nothing
		return answered && !Denied(err)
	}
	return false
}

// NoMetadata is text in the error that the AWS SDK returns if the EC2 metadata service has
// no credentials for this machine. The SDK tries that service last, so the error usually
// means that no credentials are configured.
const NoMetadata = "no EC2 IMDS role found"

// NoCredentials reports whether err shows that the SDK did not send a request because no
// credentials are configured. It returns false if a credential provider did not answer, or
// refused to return credentials.
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

// RequestError returns the error of the SDK that err wraps. The result does not contain the
// other errors that err wraps, such as the reason why a wait ended. If err wraps no error of
// the SDK, RequestError returns err.
func RequestError(err error) error {
	if request, ok := as[*smithy.OperationError](err); ok {
		return request
	}
	return err
}

// NotSigned reports whether err means that the SDK did not send a request because it could not
// obtain credentials, or could not sign the request.
func NotSigned(err error) bool {
	if _, ok := as[*v4.SigningError](err); ok {
		return true
	}
	return stepFailed(err, "get identity: ", "sign request: ")
}

// neverSent reports whether err means that the SDK could not encode a request, choose how to
// authenticate it, or find the endpoint.
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

// stepFailed reports whether err means that an SDK operation failed at one of the given
// steps. The SDK has no error types for these steps. So stepFailed compares the beginning
// of the error text with each string in steps.
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

// Advice in error messages: what the user can do.
const (
	RaiseCapacity   = "raise the table's capacity, or make it pay per request"
	CheckConnection = "check the network, the region and the endpoint"
	NotDynamoDB     = "the answer is not DynamoDB's: check proxies and the endpoint"
	OtherSchema     = "the table's key does not fit the layout: run leasehold table check"
)

// meaning is what an error code of DynamoDB means for the client and the user.
type meaning struct {
	cause  Cause  // cause of an error with this code; None if the client decides by the HTTP status
	advice string // the problem and its remedy, for error messages
}

var (
	throttled  = meaning{Busy, "throttled: " + RaiseCapacity}
	inConflict = meaning{Conflict, "in conflict with other writes: try again"}
	denied     = meaning{None, "access denied: allow it in the caller's IAM policy (leasehold table policy --prefix PREFIX prints one)"}
	expired    = meaning{Unidentified, "the credentials have expired: renew them"}
	refused    = meaning{Unidentified, "the credentials were refused: check them, the region and this machine's clock"}
)

// codes contains the error codes whose meaning does not follow from the HTTP status alone
// (DynamoDB API reference, "Error handling with DynamoDB").
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

// Advice returns text for an error message about err, the error of a request. The text says what is
// wrong and what the user can do. Advice returns "" if it has nothing to add to the text of err.
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
