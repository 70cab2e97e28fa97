package leasehold

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// sameBytes has every attempt of one request carry the bytes of the first. The
// SDK writes the members of a map in random order, and DynamoDB may take that
// for another request under the same idempotency token (aws-sdk-go-v2 issue
// 1900). It is for one goroutine.
type sameBytes struct {
	body  []byte
	taken func() // called once the SDK has read the caller's values
}

// options are those of one attempt.
func (s *sameBytes) options(o *dynamodb.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Serialize.Add(middleware.SerializeMiddlewareFunc("leasehold.SameBytes", s.serialize), middleware.After)
	})
}

func (s *sameBytes) serialize(ctx context.Context, in middleware.SerializeInput, next middleware.SerializeHandler) (
	out middleware.SerializeOutput, md middleware.Metadata, err error,
) {
	req, ok := in.Request.(*smithyhttp.Request)
	if !ok {
		return out, md, fmt.Errorf("leasehold: a request of unknown type %T", in.Request)
	}
	if s.body == nil {
		if s.body, err = io.ReadAll(req.GetStream()); err != nil {
			return out, md, err
		}
	}
	if in.Request, err = req.SetStream(bytes.NewReader(s.body)); err != nil {
		return out, md, err
	}
	s.taken()
	return next.HandleSerialize(ctx, in)
}
