package fence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/leasehold-go/leasehold/internal/decide"
)

// request is one transaction that may be sent several times under one idempotency token. It
// is sent at most once at a time.
type request struct {
	in     *dynamodb.TransactWriteItemsInput
	guards int    // number of guards; they are the last items of the transaction
	body   []byte // serialized body of the first attempt
}

// send sends the request once, for the commit c. It calls read when the SDK has read the
// caller's values.
func (r *request) send(ctx context.Context, c *Commit, read func()) (decide.CommitReply, error) {
	err := c.env.Requests.Commit(ctx, r.in, r.inTheSameBytes(read), c.checkWhenSigned)
	if errors.Is(err, errTokenOld) {
		return decide.CommitReply{Effect: decide.NotApplied, Cause: decide.Unreachable}, err
	}
	reply := decide.ClassifyCommit(err, len(r.in.TransactItems), r.guards)
	reply.Cause, err = c.env.Requests.CauseOf(reply.Cause, err)
	return reply, err
}

// inTheSameBytes makes every attempt send the same bytes as the first. The SDK writes the
// members of a map in random order. DynamoDB may treat a request with another order as a
// different request under the same token (aws-sdk-go-v2 issue 1900).
func (r *request) inTheSameBytes(read func()) func(*dynamodb.Options) {
	replace := func(ctx context.Context, in middleware.SerializeInput, next middleware.SerializeHandler) (
		out middleware.SerializeOutput, md middleware.Metadata, err error,
	) {
		req, ok := in.Request.(*smithyhttp.Request)
		if !ok {
			return out, md, fmt.Errorf("leasehold: a request of unknown type %T", in.Request)
		}
		if r.body == nil {
			if r.body, err = io.ReadAll(req.GetStream()); err != nil {
				return out, md, err
			}
		}
		if in.Request, err = req.SetStream(bytes.NewReader(r.body)); err != nil {
			return out, md, err
		}
		read()
		return next.HandleSerialize(ctx, in)
	}
	return func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Serialize.Add(middleware.SerializeMiddlewareFunc("leasehold.SameBytes", replace), middleware.After)
		})
	}
}

// tokenUse is how long requests may be signed under one token. DynamoDB accepts no request
// that was signed more than five minutes before it arrives. It keeps a token for ten
// minutes after the completion of the first request that used it (API reference,
// TransactWriteItems). So DynamoDB accepts no request of a commit after it has forgotten
// the token.
const tokenUse = 5 * time.Minute

// errTokenOld is the error of a request that was not sent, because its signature was made
// when the token was too old.
var errTokenOld = errors.New("this request was not sent: its idempotency token is more than five minutes old")

// isTokenOld reports whether DynamoDB may soon forget the commit's idempotency token.
func (c *Commit) isTokenOld() bool { return c.env.Now().Since(c.began) >= tokenUse }

// checkWhenSigned makes the SDK check the token's age right after it has signed a request.
// If the process is paused after it has decided to send a request, it may sign the request
// much later. DynamoDB accepts a request for five minutes after it was signed.
func (c *Commit) checkWhenSigned(o *dynamodb.Options) {
	check := func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
		if c.isTokenOld() {
			return middleware.FinalizeOutput{}, middleware.Metadata{}, errTokenOld
		}
		return next.HandleFinalize(ctx, in)
	}
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Finalize.Add(middleware.FinalizeMiddlewareFunc("leasehold.TokenAge", check), middleware.After)
	})
}
