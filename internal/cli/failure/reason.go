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
		return OneLine(decide.NotDynamoDB + ": " + foreign.Error())
	}
	var unread *smithy.DeserializationError
	if errors.As(err, &unread) {
		return OneLine(decide.NotDynamoDB + ": " + unread.Error())
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		said := api.ErrorCode()
		full, isDisk := DiskIn(api.ErrorMessage())
		if api.ErrorMessage() != "" {
			said += ": " + api.ErrorMessage()
		}
		if api.ErrorCode() == "InternalServerError" && isDisk {
			return OneLine(full.String() + ": " + strings.TrimPrefix(api.ErrorMessage(), "boltstore: "))
		}
		if advice := decide.Advice(err); advice != "" {
			said = advice + ": " + said
		}
		return OneLine(said)
	}
	text := err.Error()
	_, malformed, isMalformed := strings.Cut(text, "malformed HTTP") // of net/http, whose error has no type
	var address *net.OpError
	var link *url.Error
	switch {
	case isMalformed:
		return OneLine(decide.NotDynamoDB + ": malformed HTTP" + malformed)
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
		return ": " + decide.CheckConnection
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
