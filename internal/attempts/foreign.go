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

// These constants limit the number of bytes of a reply of DynamoDB. A page has 1 MB of data
// and a batch 16 MB, which take more bytes as JSON (DynamoDB developer guide, "Quotas").
// The SDK limits only how deeply a reply is nested, and not its length.
const (
	longestReply = 16 << 20
	longestBatch = 64 << 20
)

// ForeignError is returned when a server does not answer as DynamoDB does: it is another
// kind of server, or a broken one.
type ForeignError struct {
	Endpoint string
	Err      error // description of how the reply differs from DynamoDB's
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s does not answer as DynamoDB does: %v", e.Endpoint, e.Err)
}

func (e *ForeignError) Unwrap() error { return e.Err }

// endpointOf returns the address that a request was sent to, for error messages.
func endpointOf(r *http.Request) string {
	if r == nil || r.URL == nil {
		return "the endpoint"
	}
	return r.URL.Scheme + "://" + r.URL.Host
}

// missing returns the error of a reply that lacks a field which DynamoDB always sends. It
// returns nil if the SDK has not read the reply from a server. Such a reply comes from a
// wrapper of the client, which may leave out empty fields.
func missing(reply middleware.Metadata, what string) error {
	raw, ok := awsmiddleware.GetRawResponse(reply).(*smithyhttp.Response)
	if !ok {
		return nil
	}
	return &ForeignError{endpointOf(raw.Request), errors.New("its reply has no " + what)}
}

// isProtocol reports whether a request failed because the server speaks another protocol.
// Most errors of net/http have no type, so isProtocol searches their texts.
func isProtocol(err error) bool {
	var record tls.RecordHeaderError
	text := err.Error()
	return errors.As(err, &record) || strings.Contains(text, "malformed HTTP") || strings.Contains(text, "malformed MIME") ||
		strings.Contains(text, "server gave HTTP response to HTTPS client") ||
		strings.Contains(text, "readLoopPeekFailLocked: %!w(<nil>)") // in this error of net/http, a reply came although no request was sent
}

// check returns an error if a successful response cannot be DynamoDB's. Servers with
// DynamoDB's API send different headers, but each sends at least one of the headers below.
func check(r *http.Response) error {
	switch {
	case r.Request != nil && r.Request.Response != nil:
		return errors.New("it redirects requests")
	case r.StatusCode < 200 || r.StatusCode >= 300: // error replies are not checked, as the SDK reads them, and proxies send them, too
	case !strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-amz-json") &&
		r.Header.Get("X-Amzn-Requestid") == "" && r.Header.Get("X-Amz-Crc32") == "":
		return fmt.Errorf("a reply of type %q has none of its headers", r.Header.Get("Content-Type"))
	}
	return nil
}

// replyBody is the body of a reply. Reading it fails once it is longer than a reply of
// DynamoDB can be.
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
