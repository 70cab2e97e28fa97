package attempts

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Limits on the number of bytes in a reply, for BatchGetItem (longestBatch) and for all
// other requests (longestReply). DynamoDB returns at most 16 MB of data for a BatchGetItem,
// and 1 MB for a page (DynamoDB developer guide, "Quotas"). As JSON, the data has more
// bytes. The AWS SDK limits only how deeply a reply is nested, and not its length.
const (
	longestReply = 16 << 20
	longestBatch = 64 << 20
)

// ForeignError is returned when a server does not answer as DynamoDB does. The server may
// be of another kind, or may be broken.
type ForeignError struct {
	Endpoint string
	Err      error // description of how the reply differs from DynamoDB's
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s does not answer as DynamoDB does: %v", e.Endpoint, e.Err)
}

func (e *ForeignError) Unwrap() error { return e.Err }

// endpointOf returns the scheme and the host to which the SDK sent a request, for error
// messages.
func endpointOf(r *http.Request) string {
	if r == nil || r.URL == nil {
		return "the endpoint"
	}
	return r.URL.Scheme + "://" + r.URL.Host
}

// missing returns the error for a reply without a field that DynamoDB always sends. The
// parameter what is the name of the field. missing returns nil if the SDK has not read the
// reply from a server. The reply then comes from a wrapper around the SDK's client, which
// may omit empty fields.
func missing(reply middleware.Metadata, what string) error {
	raw, ok := awsmiddleware.GetRawResponse(reply).(*smithyhttp.Response)
	if !ok {
		return nil
	}
	return &ForeignError{endpointOf(raw.Request), errors.New("its reply has no " + what)}
}

// isProtocol reports whether err means that a request failed because the server does not
// speak HTTP or HTTPS as expected. Most errors of net/http have no exported type, so
// isProtocol searches the text of err.
func isProtocol(err error) bool {
	var record tls.RecordHeaderError
	text := err.Error()
	return errors.As(err, &record) || strings.Contains(text, "malformed HTTP") || strings.Contains(text, "malformed MIME") ||
		strings.Contains(text, "server gave HTTP response to HTTPS client") ||
		strings.Contains(text, "readLoopPeekFailLocked: %!w(<nil>)") // net/http returns this text if a server sends a reply before it has received a request
}

// check returns an error if r is a successful response that DynamoDB cannot have sent.
// Servers with DynamoDB's API send different headers, but each sends at least one of the
// headers that check reads.
func check(r *http.Response) error {
	switch {
	case r.Request != nil && r.Request.Response != nil:
		return errors.New("it redirects requests")
	case r.StatusCode < 200 || r.StatusCode >= 300: // no check of error replies: the SDK classifies them, and proxies send them, too
	case !strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-amz-json") &&
		r.Header.Get("X-Amzn-Requestid") == "" && r.Header.Get("X-Amz-Crc32") == "":
		return fmt.Errorf("a reply of type %q has none of its headers", r.Header.Get("Content-Type"))
	}
	return nil
}

// replyBody is the body of a reply. Its Read returns a *ForeignError if the body is longer
// than a reply of DynamoDB can be.
type replyBody struct {
	io.ReadCloser
	request *http.Request
	left    int // bytes that may still be read
}

func (b *replyBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, &ForeignError{endpointOf(b.request), errors.New("its reply is longer than any of DynamoDB's")}
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return b.Read(nil)
	}
	return n, err
}
