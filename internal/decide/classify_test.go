package decide

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

func response(status int, err error) error {
	return &smithy.OperationError{ServiceID: "DynamoDB", OperationName: "UpdateItem", Err: &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}}, Err: err,
	}}
}

// wrongTimeError is the error of a request that AWS refused because its signature had the wrong
// time. The SDK marks such an error as retryable if it expects AWS to accept its next signature.
type wrongTimeError struct{ error }

func (wrongTimeError) RetryableError() bool { return true }
func (e wrongTimeError) Unwrap() error      { return e.error }

func TestThrottlingIsDistinguishedFromWriteConflicts(t *testing.T) {
	for name, tc := range map[string]struct {
		err                   error
		throttled, inConflict bool
	}{
		"throttled":                       {response(400, &types.ProvisionedThroughputExceededException{}), true, false},
		"a throttled transaction":         {cancelled("None", "ThrottlingError"), true, false},
		"in conflict":                     {response(400, &types.TransactionConflictException{}), false, true},
		"in conflict with another Region": {response(400, &types.ReplicatedWriteConflictException{}), false, true},
		"a transaction in conflict":       {cancelled("None", "TransactionConflict"), false, true},
		"a failed condition":              {cancelled("None", "ConditionalCheckFailed"), false, false},
		"denied":                          {response(400, &smithy.GenericAPIError{Code: "AccessDeniedException"}), false, false},
		"no answer":                       {context.DeadlineExceeded, false, false},
	} {
		if is, conflict := Throttled(tc.err), refusedAs(inConflict, tc.err); is != tc.throttled || conflict != tc.inConflict {
			t.Errorf("%s: throttled %v, in conflict %v", name, is, conflict)
		}
	}
}

// operation wraps err as the SDK wraps the error of a failed call. provider wraps err as the error
// of a credential provider.
func operation(err error) error { return &smithy.OperationError{OperationName: "UpdateItem", Err: err} }
func provider(err error) error  { return operation(fmt.Errorf("get identity: %w", err)) }
func api(code string) error     { return &smithy.GenericAPIError{Code: code} }

// mark is a property of an error, in addition to its cause.
type mark int

const (
	outage   mark = 1 << iota // the error is DynamoDB's answer that it is unavailable
	accepted                  // the error shows that DynamoDB has accepted the credentials
)

// results lists errors of requests, each with its expected effect, cause and marks.
var results = []struct {
	name   string
	err    error
	effect Effect
	cause  Cause
	is     mark
}{
	{"success", nil, Applied, None, accepted},
	{"failed condition", response(400, &types.ConditionalCheckFailedException{}), NotApplied, ConditionFailed, accepted},
	{"provisioned throughput", response(400, &types.ProvisionedThroughputExceededException{}), NotApplied, Busy, outage | accepted},
	{"throttling", response(400, api("ThrottlingException")), NotApplied, Busy, outage | accepted},
	{"request limit", response(400, &types.RequestLimitExceeded{}), NotApplied, Busy, outage | accepted},
	{"conflict with a transaction", response(400, &types.TransactionConflictException{}), NotApplied, Busy, accepted},
	{"validation", response(400, api("ValidationException")), NotApplied, Refused, accepted},
	{"access denied", response(400, api("AccessDeniedException")), NotApplied, Refused, 0},
	{"no such table", response(400, &types.ResourceNotFoundException{}), NotApplied, Refused, accepted},
	{"expired credentials", response(400, api("ExpiredTokenException")), NotApplied, Unidentified, 0},
	{"unknown credentials", response(400, api("UnrecognizedClientException")), NotApplied, Unidentified, 0},
	{"an incomplete signature", response(400, api("IncompleteSignatureException")), NotApplied, Unidentified, 0},
	{"no signature", response(400, api("MissingAuthenticationTokenException")), NotApplied, Unidentified, 0},
	{"an unknown key id", response(400, api("InvalidClientTokenId")), NotApplied, Unidentified, 0},
	{"a signature with a wrong time that the SDK corrects", wrongTimeError{response(400, api("InvalidSignatureException"))}, NotApplied, Unreachable, 0},
	{"a server error that a wrapper marks as retryable", wrongTimeError{response(500, api("InternalServerError"))}, Unknown, Unreachable, outage},
	{"a wrong secret", response(400, api("InvalidSignatureException")), NotApplied, Unidentified, 0},
	{"no credentials", provider(errors.New("none")), NotApplied, Unidentified, 0},
	{"no way to authenticate", operation(fmt.Errorf("resolve auth scheme: %w", errors.New("none"))), NotApplied, Refused, 0},
	{"no endpoint", operation(fmt.Errorf("failed to resolve service endpoint, %w", errors.New("none"))), NotApplied, Refused, 0},
	{"a request that cannot be built", operation(&smithy.SerializationError{Err: errors.New("bad input")}), NotApplied, Refused, 0},
	{"a request that cannot be signed", operation(&v4.SigningError{Err: errors.New("no key")}), NotApplied, Unidentified, 0},
	{"a request that the SDK cannot sign", operation(fmt.Errorf("sign request: %w", errors.New("no key"))), NotApplied, Unidentified, 0},
	{"a provider whose server refuses", provider(response(403, api("AccessDenied"))), NotApplied, Unidentified, 0},
	{"a provider whose server fails", provider(response(500, api("InternalFailure"))), NotApplied, Unreachable, 0},
	{"a container's agent that fails", provider(agentError{503}), NotApplied, Unreachable, 0},
	{"a container's agent that refuses", provider(agentError{404}), NotApplied, Unidentified, 0},
	{"a provider that is throttled", provider(response(400, api("Throttling"))), NotApplied, Unidentified, 0},
	{"a provider that is not reached", provider(&smithyhttp.RequestSendError{Err: errors.New("reset")}), NotApplied, Unreachable, 0},
	{"no credentials, metadata service unreachable", operation(fmt.Errorf("get identity: no EC2 IMDS role found: %w", &smithyhttp.RequestSendError{Err: errors.New("no route")})), NotApplied, Unidentified, 0},
	{"a wrapper's refusal, without a response", &types.ResourceNotFoundException{}, NotApplied, Refused, accepted},
	{"conflict with another region", response(400, &types.ReplicatedWriteConflictException{}), NotApplied, Busy, accepted},
	{"internal error", response(500, &types.InternalServerError{}), Unknown, Unreachable, outage},
	{"service unavailable", response(503, api("ServiceUnavailable")), Unknown, Unreachable, outage},
	{"a proxy's page", response(403, api("UnknownError")), Unknown, Unreachable, 0},
	{"connection reset", operation(&smithyhttp.RequestSendError{Err: &net.OpError{Op: "read", Err: errors.New("reset")}}), Unknown, Unreachable, 0},
	{"a provider that hung", provider(context.DeadlineExceeded), NotApplied, Unreachable, 0},
	{"deadline", operation(&smithyhttp.RequestSendError{Err: context.DeadlineExceeded}), Unknown, Unreachable, 0},
	{"cancelled", operation(&smithy.CanceledError{Err: context.Canceled}), Unknown, Unreachable, 0},
	{"unreadable reply", operation(&smithy.DeserializationError{Err: errors.New("EOF")}), Unknown, Unreachable, 0},
	{"a wrapper's own error", errors.New("dax: node is gone"), Unknown, Unreachable, 0},
	{"cancelled transaction", response(400, &types.TransactionCanceledException{}), NotApplied, Refused, accepted},
	{"a wrapper's server error, without a response", &types.InternalServerError{}, Unknown, Unreachable, outage},
	{"no answer", context.DeadlineExceeded, Unknown, Unreachable, 0},
}

func TestErrorIsClassifiedByCauseAndByEffectOnRecord(t *testing.T) {
	for _, tc := range results {
		if got := Classify(tc.err); got.Effect != tc.effect || got.Cause != tc.cause {
			t.Errorf("%s: effect %v cause %v, want %v %v", tc.name, got.Effect, got.Cause, tc.effect, tc.cause)
		}
	}
	old := map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: "a"}}
	if got := Classify(response(400, &types.ConditionalCheckFailedException{Item: old})); got.Item == nil {
		t.Error("the old item of a failed condition is missing")
	}
}

// areMarked checks that the given function returns true for exactly the errors in the list
// "results" that have the given mark.
func areMarked(t *testing.T, is mark, got func(error) bool) {
	t.Helper()
	for _, tc := range results {
		if got := got(tc.err); got != (tc.is&is != 0) {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

func TestErrorCountsAsOutageOnlyIfDynamoDBSaysItIsUnavailable(t *testing.T) {
	areMarked(t, outage, func(err error) bool { return Classify(err).Outage })
}

func TestErrorIsClassifiedByWhetherCredentialsWereAccepted(t *testing.T) {
	areMarked(t, accepted, Accepted)
}

func TestErrorMeansMissingCredentialsOnlyIfNoneAreConfigured(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  error
		want bool
	}{
		{"no credentials", provider(errors.New("static credentials are empty")), true},
		{"no credentials, wait ended by deadline", errors.Join(context.DeadlineExceeded, provider(errors.New("static credentials are empty"))), true},
		{"no credentials, metadata service silent", provider(fmt.Errorf("no EC2 IMDS role found: %w", context.DeadlineExceeded)), true},
		{"a provider that refuses", provider(response(403, &smithy.GenericAPIError{Code: "AccessDenied"})), false},
		{"a provider that is not reached", provider(&smithyhttp.RequestSendError{Err: errors.New("reset")}), false},
		{"a provider that hung", provider(context.DeadlineExceeded), false},
		{"call cancelled before the provider answered", provider(&aws.RequestCanceledError{Err: context.Canceled}), false},
		{"credentials that cannot be used", &smithy.OperationError{Err: errors.New("sign request: no key")}, false},
		{"a request that was sent", response(400, &smithy.GenericAPIError{Code: "AccessDeniedException"}), false},
	} {
		if NoCredentials(tc.err) != tc.want {
			t.Errorf("%s: NoCredentials returned %v", tc.name, !tc.want)
		}
	}
}

func TestRefusedCredentialsAreRetriedIfAcceptedInEarlierRequest(t *testing.T) {
	for _, tc := range []struct {
		cause    Cause
		answered bool
		want     Cause
	}{
		{Unidentified, true, Unreachable},
		{Unidentified, false, Refused},
		{Refused, true, Refused},
		{Busy, false, Busy},
	} {
		if got := tc.cause.After(tc.answered); got != tc.want {
			t.Errorf("%v after %v: %v, want %v", tc.cause, tc.answered, got, tc.want)
		}
	}
}

// agentError imitates the SDK's error for the credential agent of a container. This error
// has a method for the HTTP status of the agent's reply.
type agentError struct{ code int }

func (e agentError) Error() string                 { return fmt.Sprint("status ", e.code) }
func (e agentError) ErrorCode() string             { return "" }
func (e agentError) ErrorMessage() string          { return "" }
func (e agentError) ErrorFault() smithy.ErrorFault { return smithy.FaultUnknown }
func (e agentError) HTTPStatusCode() int           { return e.code }
