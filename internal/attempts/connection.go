package attempts

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Bounded makes a DynamoDB client return a *ForeignError for a reply that DynamoDB cannot have
// sent. The client accepts no compressed reply: a few bytes could grow to megabytes. It reuses a
// connection even if the reply arrives while net/http still sends the request.
func Bounded(o *dynamodb.Options) {
	o.HTTPClient = bounded{o.HTTPClient}
	o.EnableAcceptEncodingGzip = false
}

type bounded struct{ dynamodb.HTTPClient }

func (c bounded) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		// The SDK closes the body of its request once the reply has arrived. From then on, the body's
		// WriteTo returns io.EOF, and net/http closes a usable connection. An io.NopCloser around a copy
		// of the body prevents this. The copy is a bytes.Buffer, so that net/http sends header and body
		// in one write.
		body := bytes.NewBuffer(make([]byte, 0, max(r.ContentLength, 0)+bytes.MinRead))
		if _, err := body.ReadFrom(r.Body); err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(body)
	}
	response, err := c.HTTPClient.Do(r)
	switch {
	case err != nil && isProtocol(err):
		return response, &ForeignError{endpointOf(r), err}
	case err != nil:
		return response, err
	}
	if err := check(response); err != nil {
		_ = response.Body.Close() // close without reading: the reply is not from DynamoDB
		return nil, &ForeignError{endpointOf(r), err}
	}
	reply := &replyBody{ReadCloser: response.Body, request: r, left: longestReply}
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".BatchGetItem") {
		reply.left = longestBatch
	}
	response.Body = reply
	return response, nil
}

// BoundedReplies limits the size of replies for SDK clients of AWS services other than DynamoDB,
// such as credential providers. A request with a larger reply fails, and the SDK closes the
// connection. Add BoundedReplies to the APIOptions of an aws.Config. For DynamoDB, use Bounded.
func BoundedReplies(stack *middleware.Stack) error {
	bound := func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
		if awsmiddleware.GetServiceID(ctx) == dynamodb.ServiceID {
			return next.HandleDeserialize(ctx, in)
		}
		if r, ok := in.Request.(*smithyhttp.Request); ok {
			in.Request = readOnly(r)
		}
		out, about, err := next.HandleDeserialize(ctx, in)
		if r, ok := out.RawResponse.(*smithyhttp.Response); ok && r != nil && r.Response != nil && r.Body != nil {
			r.Body = &replyBody{ReadCloser: r.Body, request: r.Request, left: longestReply}
		}
		return out, about, err
	}
	return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("BoundedReplies", bound), middleware.After)
}

// readOnly returns the request with a body that has only the methods Read and Seek. Then net/http
// cannot call the body's WriteTo, which fails once the SDK has closed the body.
func readOnly(r *smithyhttp.Request) *smithyhttp.Request {
	if body, ok := r.GetStream().(io.ReadSeeker); ok {
		if only, err := r.SetStream(struct{ io.ReadSeeker }{body}); err == nil {
			return only
		}
	}
	return r
}

// Limits on the bytes of a reply: longestBatch for BatchGetItem, longestReply for all other
// requests. DynamoDB returns at most 16 MB for a BatchGetItem and 1 MB for a page (DynamoDB
// developer guide, "Quotas"). JSON takes more bytes. The AWS SDK limits only the nesting.
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

// endpointOf returns the scheme and the host to which the SDK sent a request, for error messages.
// It accepts nil: the caller's own HTTP client may return a response without its request.
func endpointOf(r *http.Request) string {
	if r == nil {
		return "the endpoint"
	}
	return r.URL.Scheme + "://" + r.URL.Host
}

// missing returns the error for a reply without the given field, which DynamoDB always sends. It
// returns nil if the reply was not read from a server: a wrapper around the SDK's client has made
// it, and may omit empty fields.
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
	case r.StatusCode < 200 || r.StatusCode >= 300: // the SDK classifies error replies; they may come from a proxy
	case !strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-amz-json") &&
		r.Header.Get("X-Amzn-Requestid") == "" && r.Header.Get("X-Amz-Crc32") == "":
		return fmt.Errorf("a reply of type %q has none of its headers", r.Header.Get("Content-Type"))
	}
	return nil
}

// replyBody is the body of a reply. Read returns a *ForeignError if the body is longer than a
// reply of DynamoDB can be.
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
