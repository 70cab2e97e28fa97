package failure

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/aws/smithy-go"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
)

// Reason says why a request failed, after what to do about it.
func Reason(err error) string {
	switch {
	case decide.NoCredentials(err) && strings.Contains(err.Error(), "no EC2 IMDS role found"): // nowhere, down to the last place
		return "no credentials were found in AWS_ACCESS_KEY_ID, the profile (~/.aws/config and credentials) or this machine's metadata service: type aws configure or aws sso login, set AWS_PROFILE, or use --profile"
	case decide.NoCredentials(err):
		return OneLine("no credentials: set AWS_PROFILE or the AWS_ variables, or use --profile: " + providerError(err))
	case decide.NotSigned(err):
		return OneLine("the request could not be signed: check the source of the credentials: " + providerError(err))
	}
	var foreign *attempts.ForeignError
	if errors.As(err, &foreign) {
		return OneLine(adviceNotDynamoDB + foreign.Error())
	}
	var unread *smithy.DeserializationError
	if errors.As(err, &unread) {
		return OneLine(adviceNotDynamoDB + unread.Error())
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		said := api.ErrorCode()
		full, isDisk := DiskIn(api.ErrorMessage())
		if api.ErrorMessage() != "" {
			said += ": " + api.ErrorMessage()
		}
		switch {
		case decide.Throttled(err):
			return OneLine("throttled: " + AdviceThrottled + ": " + said)
		case decide.InConflict(err):
			return OneLine("in conflict with other writes: try again: " + said)
		case api.ErrorCode() == "InternalServerError" && isDisk:
			return OneLine(full.String() + ": " + strings.TrimPrefix(api.ErrorMessage(), "boltstore: "))
		case decide.Classify(err).Outage:
			return OneLine("DynamoDB has failed: try again later: " + said)
		}
		return OneLine(advice(api) + said)
	}
	text := err.Error()
	_, malformed, isMalformed := strings.Cut(text, "malformed HTTP") // of net/http, whose error has no type
	var address *net.OpError
	var link *url.Error
	switch {
	case isMalformed:
		return OneLine(adviceNotDynamoDB + "malformed HTTP" + malformed)
	case errors.As(err, &address) && errors.As(err, &link):
		return OneLine(fmt.Sprintf("no connection to %s: %v", link.URL, address.Err))
	case IsTimeout(err):
		return "no answer in time"
	case strings.Contains(text, "Missing Region"), strings.Contains(text, "not a valid host label"), strings.Contains(text, "Invalid Configuration"):
		return "no region: set AWS_REGION or use --region"
	}
	return OneLine(text)
}

// Remedy says what to do if no reply came. AWS's own errors have their advice first.
func Remedy(err error) string {
	if _, is := DiskIn(err.Error()); is {
		return "" // its text has it
	}
	var address *net.OpError
	if errors.As(err, &address) || IsTimeout(err) {
		return ": " + AdviceUnreachable
	}
	return ""
}

// IsTimeout reports whether a request got no reply in time.
func IsTimeout(err error) bool {
	var timed net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timed) && timed.Timeout()
}

// providerError is the text of the credential provider's own error.
func providerError(err error) string {
	text := err.Error()
	for _, step := range []string{"get identity: ", "get credentials: ", "failed to refresh cached credentials, "} {
		if _, said, ok := strings.Cut(text, step); ok {
			text = said
		}
	}
	return text
}

// What to do about requests that are throttled, get no answer, or get that of another.
const (
	AdviceThrottled   = "raise the table's capacity, or make it pay per request"
	AdviceUnreachable = "check the network, the region and the endpoint"
	adviceNotDynamoDB = "the answer is not DynamoDB's: check proxies and the endpoint: "
)

// advice says what to do about a DynamoDB error code.
func advice(api smithy.APIError) string {
	if strings.HasPrefix(api.ErrorMessage(), "KMS ") {
		return "the KMS key that encrypts the table cannot be used: enable it, and allow its use in the key's policy: "
	}
	switch api.ErrorCode() {
	case "AccessDeniedException", "AccessDenied":
		return "access denied: allow it in the caller's IAM policy: "
	case "ExpiredTokenException", "ExpiredToken":
		return "the credentials have expired: renew them: "
	case "UnrecognizedClientException", "InvalidSignatureException", "IncompleteSignatureException", "MissingAuthenticationTokenException":
		return "the credentials were refused: check them, the region and this machine's clock: "
	case "ValidationException":
		if strings.Contains(api.ErrorMessage(), "schema") {
			return "the table's key does not fit the layout: run leasehold table check: "
		}
	case "ItemCollectionSizeLimitExceededException":
		return "the table has a local secondary index, which is full: use a lock table without one: "
	case "LimitExceededException":
		return "a limit of the AWS account is reached: try again later, or ask AWS for more: "
	case "UnknownError":
		return adviceNotDynamoDB
	}
	return ""
}
