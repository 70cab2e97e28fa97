package attempts

import (
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// KeepConnections has a DynamoDB client use its connections again.
//
// The SDK closes the body of a request once the reply has come. Then the body's
// WriteTo returns io.EOF, which a transport that looks for the end of the body only
// afterwards takes for a failure: it drops a connection that is as good as new. Its
// Read returns io.EOF too, but there that is the end.
func KeepConnections(o *dynamodb.Options) { o.HTTPClient = reading{o.HTTPClient} }

// reading sends bodies that can only be read.
type reading struct{ dynamodb.HTTPClient }

func (c reading) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return c.HTTPClient.Do(r)
}
