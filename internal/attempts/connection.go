package attempts

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Bounded changes the options of a DynamoDB client in three ways. The client returns a
// *ForeignError for a reply that DynamoDB cannot have sent. It does not accept compressed
// replies, as a few compressed bytes could grow to a reply of megabytes. It reuses its
// connections, as follows.
//
// The SDK closes the body of a request once the reply has arrived. From then on, the body's
// method WriteTo returns io.EOF. If net/http reads the end of the body only after that, it
// takes io.EOF for a failure. It then closes a connection that is still usable. So Bounded
// gives net/http another body, which the SDK cannot close. That body is an io.NopCloser
// around a bytes.Buffer: net/http knows that this type is in memory. For other types it
// sends the header separately.
func Bounded(o *dynamodb.Options) {
	o.HTTPClient = bounded{o.HTTPClient}
	o.EnableAcceptEncodingGzip = false
}

type bounded struct{ dynamodb.HTTPClient }

func (c bounded) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
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
		_ = response.Body.Close() // closed without reading it, as the reply is not from DynamoDB
		return nil, &ForeignError{endpointOf(r), err}
	}
	reply := &replyBody{ReadCloser: response.Body, request: r, left: longestReply}
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".BatchGetItem") {
		reply.left = longestBatch
	}
	response.Body = reply
	return response, nil
}

// BoundedReplies limits the size of replies for SDK clients of AWS services other than
// DynamoDB, such as credential providers. A request with a larger reply fails, and the SDK
// closes its connection. Use BoundedReplies in the APIOptions of an aws.Config. For a
// DynamoDB client, use Bounded.
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

// readOnly returns the request with a body that has only the methods Read and Seek. So
// net/http cannot call the body's WriteTo, which fails once the SDK has closed the body, as
// Bounded describes.
func readOnly(r *smithyhttp.Request) *smithyhttp.Request {
	if body, ok := r.GetStream().(io.ReadSeeker); ok {
		if only, err := r.SetStream(struct{ io.ReadSeeker }{body}); err == nil {
			return only
		}
	}
	return r
}
