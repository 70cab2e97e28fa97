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

// wrongTimeError is the error of a signature that was refused because of the wrong time.
// The SDK marks the error as retryable if it expects that the next signature will be
// accepted.
type wrongTimeError struct{ error }

func (wrongTimeError) RetryableError() bool { return true }
func (e wrongTimeError) Unwrap() error      { return e.error }

func TestThrottlingAndConflictsAreDistinguished(t *testing.T) {
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

func TestOnlyErrorsFromDynamoDBCountAsOutage(t *testing.T) {
	for _, tc := range []struct {
		name   string
		err    error
		outage bool
	}{
		{"server error", response(500, &types.InternalServerError{}), true},
		{"service unavailable", response(503, &smithy.GenericAPIError{Code: "ServiceUnavailable"}), true},
		{"a wrapper's server error, without a response", &types.InternalServerError{}, true},
		{"throttling", response(400, &smithy.GenericAPIError{Code: "ThrottlingException"}), true},
		{"conflict with a transaction", response(400, &types.TransactionConflictException{}), false},
		{"a proxy's page", response(403, &smithy.GenericAPIError{Code: "UnknownError"}), false},
		{"failed condition", response(400, &types.ConditionalCheckFailedException{}), false},
		{"deadline", context.DeadlineExceeded, false},
		{"success", nil, false},
	} {
		if got := Classify(tc.err).Outage; got != tc.outage {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

func TestClassifyDeterminesCauseOfEachError(t *testing.T) {
	old := map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: "a"}}
	api := func(code string) error { return &smithy.GenericAPIError{Code: code} }
	operation := func(err error) error { return &smithy.OperationError{OperationName: "UpdateItem", Err: err} }
	for _, tc := range []struct {
		name   string
		err    error
		effect Effect
		cause  Cause
	}{
		{"success", nil, Applied, None},
		{"failed condition", response(400, &types.ConditionalCheckFailedException{Item: old}), NotApplied, ConditionFailed},
		{"provisioned throughput", response(400, &types.ProvisionedThroughputExceededException{}), NotApplied, Busy},
		{"throttling", response(400, api("ThrottlingException")), NotApplied, Busy},
		{"request limit", response(400, &types.RequestLimitExceeded{}), NotApplied, Busy},
		{"conflict with a transaction", response(400, &types.TransactionConflictException{}), NotApplied, Busy},
		{"validation", response(400, api("ValidationException")), NotApplied, Refused},
		{"access denied", response(400, api("AccessDeniedException")), NotApplied, Refused},
		{"no such table", response(400, &types.ResourceNotFoundException{}), NotApplied, Refused},
		{"expired credentials", response(400, api("ExpiredTokenException")), NotApplied, Unidentified},
		{"unknown credentials", response(400, api("UnrecognizedClientException")), NotApplied, Unidentified},
		{"an incomplete signature", response(400, api("IncompleteSignatureException")), NotApplied, Unidentified},
		{"no signature", response(400, api("MissingAuthenticationTokenException")), NotApplied, Unidentified},
		{"an unknown key id", response(400, api("InvalidClientTokenId")), NotApplied, Unidentified},
		{"a signature of a wrong time, now that the SDK knows the right one", wrongTimeError{response(400, api("InvalidSignatureException"))}, NotApplied, Unreachable},
		{"a server error that a wrapper around the SDK calls retryable", wrongTimeError{response(500, api("InternalServerError"))}, Unknown, Unreachable},
		{"a wrong secret", response(400, api("InvalidSignatureException")), NotApplied, Unidentified},
		{"no credentials", operation(fmt.Errorf("get identity: %w", errors.New("none"))), NotApplied, Unidentified},
		{"no way to authenticate", operation(fmt.Errorf("resolve auth scheme: %w", errors.New("none"))), NotApplied, Refused},
		{"no endpoint", operation(fmt.Errorf("failed to resolve service endpoint, %w", errors.New("none"))), NotApplied, Refused},
		{"a request that cannot be built", operation(&smithy.SerializationError{Err: errors.New("bad input")}), NotApplied, Refused},
		{"a request that cannot be signed", operation(&v4.SigningError{Err: errors.New("no key")}), NotApplied, Unidentified},
		{"a request that the SDK cannot sign", operation(fmt.Errorf("sign request: %w", errors.New("no key"))), NotApplied, Unidentified},
		{"a provider whose server refuses", operation(fmt.Errorf("get identity: %w", response(403, api("AccessDenied")))), NotApplied, Unidentified},
		{"a provider whose server fails", operation(fmt.Errorf("get identity: %w", response(500, api("InternalFailure")))), NotApplied, Unreachable},
		{"a container's agent that fails", operation(fmt.Errorf("get identity: %w", agentError{503})), NotApplied, Unreachable},
		{"a container's agent that refuses", operation(fmt.Errorf("get identity: %w", agentError{404})), NotApplied, Unidentified},
		{"a provider that is throttled", operation(fmt.Errorf("get identity: %w", response(400, api("Throttling")))), NotApplied, Unidentified},
		{"a provider that is not reached", operation(fmt.Errorf("get identity: %w", &smithyhttp.RequestSendError{Err: errors.New("reset")})), NotApplied, Unreachable},
		{"none, down to the machine's service, which is not there", operation(fmt.Errorf("get identity: no EC2 IMDS role found: %w", &smithyhttp.RequestSendError{Err: errors.New("no route")})), NotApplied, Unidentified},
		{"a wrapper's refusal, without a response", &types.ResourceNotFoundException{}, NotApplied, Refused},
		{"conflict with another region", response(400, &types.ReplicatedWriteConflictException{}), NotApplied, Busy},
		{"internal error", response(500, &types.InternalServerError{}), Unknown, Unreachable},
		{"service unavailable", response(503, api("ServiceUnavailable")), Unknown, Unreachable},
		{"a proxy's page", response(403, api("UnknownError")), Unknown, Unreachable},
		{"connection reset", operation(&smithyhttp.RequestSendError{Err: &net.OpError{Op: "read", Err: errors.New("reset")}}), Unknown, Unreachable},
		{"a provider that hung", operation(fmt.Errorf("get identity: %w", context.DeadlineExceeded)), NotApplied, Unreachable},
		{"deadline", operation(&smithyhttp.RequestSendError{Err: context.DeadlineExceeded}), Unknown, Unreachable},
		{"cancelled", operation(&smithy.CanceledError{Err: context.Canceled}), Unknown, Unreachable},
		{"unreadable reply", operation(&smithy.DeserializationError{Err: errors.New("EOF")}), Unknown, Unreachable},
		{"a wrapper's own error", errors.New("dax: node is gone"), Unknown, Unreachable},
	} {
		got := Classify(tc.err)
		if got.Effect != tc.effect || got.Cause != tc.cause {
			t.Errorf("%s: effect %v cause %v, want %v %v", tc.name, got.Effect, got.Cause, tc.effect, tc.cause)
		}
	}
	if got := Classify(response(400, &types.ConditionalCheckFailedException{Item: old})); got.Old == nil {
		t.Error("the old item of a failed condition is lost")
	}
}

func TestClientRetriesDuringBriefLackOfCredentials(t *testing.T) {
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
	provider := &smithy.OperationError{Err: fmt.Errorf("get identity: %w", response(403, &smithy.GenericAPIError{Code: "AccessDenied"}))}
	for err, want := range map[error]bool{
		provider: false,
		response(400, &smithy.GenericAPIError{Code: "AccessDenied"}): true,
		errors.New("dax: node is gone"):                              false,
		nil:                                                          true,
	} {
		if Answered(err) != want {
			t.Errorf("%v: answered %v", err, !want)
		}
	}
}

// agentError imitates the SDK's error for a container's credential agent. The error itself
// carries the HTTP status.
type agentError struct{ code int }

func (e agentError) Error() string                 { return fmt.Sprint("status ", e.code) }
func (e agentError) ErrorCode() string             { return "" }
func (e agentError) ErrorMessage() string          { return "" }
func (e agentError) ErrorFault() smithy.ErrorFault { return smithy.FaultUnknown }
func (e agentError) HTTPStatusCode() int           { return e.code }

func TestAcceptedReportsWhetherCredentialsWereAccepted(t *testing.T) {
	api := func(status int, code string) error { return response(status, &smithy.GenericAPIError{Code: code}) }
	for _, tc := range []struct {
		name string
		err  error
		want bool
	}{
		{"success", nil, true},
		{"failed condition", response(400, &types.ConditionalCheckFailedException{}), true},
		{"cancelled transaction", response(400, &types.TransactionCanceledException{}), true},
		{"throttling", api(400, "ThrottlingException"), true},
		{"no such table", response(400, &types.ResourceNotFoundException{}), true},
		{"expired credentials", api(400, "ExpiredTokenException"), false},
		{"unknown credentials", api(400, "UnrecognizedClientException"), false},
		{"wrong signature", api(400, "InvalidSignatureException"), false},
		{"access denied", api(400, "AccessDeniedException"), false},
		{"server error", response(500, &types.InternalServerError{}), false},
		{"proxy", api(403, "UnknownError"), false},
		{"no credentials", &smithy.OperationError{Err: errors.New("get identity: none")}, false},
		{"request that cannot be built", &smithy.OperationError{Err: &smithy.SerializationError{Err: errors.New("bad")}}, false},
		{"no answer", context.DeadlineExceeded, false},
	} {
		if got := Accepted(tc.err); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

func TestClassifyDistinguishesMissingFromUnavailableCredentials(t *testing.T) {
	provider := func(err error) error {
		return &smithy.OperationError{OperationName: "UpdateItem", Err: fmt.Errorf("get identity: %w", err)}
	}
	for _, tc := range []struct {
		name string
		err  error
		want bool
	}{
		{"none", provider(errors.New("static credentials are empty")), true},
		{"none, until a deadline ended the wait", errors.Join(context.DeadlineExceeded, provider(errors.New("static credentials are empty"))), true},
		{"none, down to the machine's service, which did not answer", provider(fmt.Errorf("no EC2 IMDS role found: %w", context.DeadlineExceeded)), true},
		{"a provider that refuses", provider(response(403, &smithy.GenericAPIError{Code: "AccessDenied"})), false},
		{"a provider that is not reached", provider(&smithyhttp.RequestSendError{Err: errors.New("reset")}), false},
		{"a provider that hung", provider(context.DeadlineExceeded), false},
		{"a caller who did not wait for the provider", provider(&aws.RequestCanceledError{Err: context.Canceled}), false},
		{"credentials that cannot be used", &smithy.OperationError{Err: errors.New("sign request: no key")}, false},
		{"a request that was sent", response(400, &smithy.GenericAPIError{Code: "AccessDeniedException"}), false},
	} {
		if NoCredentials(tc.err) != tc.want {
			t.Errorf("%s: no credentials: %v", tc.name, !tc.want)
		}
	}
}
