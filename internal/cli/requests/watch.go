package requests

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"reflect"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Watch is who is told of the requests of a client. Several may watch one client.
type Watch struct {
	Health *Health       // nil: nobody asks for it
	Units  bool          // have replies say what was consumed
	Each   func(Request) // is called at the end of each request, of several at a time; nil: none
}

// Client is an option of the client that is watched.
func (w Watch) Client(o *dynamodb.Options) {
	o.APIOptions = append(slices.Clip(o.APIOptions), func(stack *middleware.Stack) error {
		if before, ok := stack.Initialize.Get(middlewareID); ok {
			before.(*operation).join(w)
			return nil
		}
		op := &operation{name: stack.ID()}
		op.join(w)
		return errors.Join(stack.Initialize.Add(op, middleware.Before), stack.Deserialize.Add(op, middleware.Before))
	})
}

const middlewareID = "leasehold: watch requests"

// operation is one call of the client, which sends one request, or several if the SDK
// tries again. It is a middleware: the SDK makes a stack for each call.
type operation struct {
	name    string
	watches []Watch
	input   any
	open    []*Pending // in the Health of each watch that has one
}

func (op *operation) join(w Watch) { op.watches = append(op.watches, w) }

func (*operation) ID() string { return middlewareID }

// HandleInitialize is called once.
func (op *operation) HandleInitialize(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
	middleware.InitializeOutput, middleware.Metadata, error,
) {
	for _, w := range op.watches {
		if w.Units {
			in.Parameters = askingUnits(in.Parameters)
		}
		if w.Health != nil {
			p := w.Health.Begin()
			defer p.End()
			op.open = append(op.open, p)
		}
	}
	op.input = in.Parameters
	return next.HandleInitialize(ctx, in)
}

// HandleDeserialize is called for each request.
func (op *operation) HandleDeserialize(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (
	middleware.DeserializeOutput, middleware.Metadata, error,
) {
	for _, p := range op.open {
		p.sent()
	}
	r := Request{Operation: op.name, Input: op.input, Began: time.Now()}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) {
		r.Server, r.Reused = c.Conn.RemoteAddr().String(), c.Reused
	}})
	out, about, err := next.HandleDeserialize(ctx, in)
	r.Took, r.Err, r.Units = time.Since(r.Began), err, units(out.Result)
	if reply, ok := out.RawResponse.(*smithyhttp.Response); ok && reply.StatusCode != 0 { // it is 0 if there was none
		date, _ := http.ParseTime(reply.Header.Get("Date")) // zero: it does not say
		r.Reply = Reply{Code: reply.StatusCode, Status: reply.Status, ID: reply.Header.Get("X-Amzn-Requestid"), Date: date}
		if reply.TLS != nil {
			r.TLS = reply.TLS.Version
		}
	}
	for _, w := range op.watches {
		if w.Health != nil {
			w.Health.saw(r)
		}
		if w.Each != nil {
			w.Each(r)
		}
	}
	return out, about, err
}

// The inputs and outputs of operations have fields of the same names, and no method or
// type in common.

// askingUnits returns a copy of the input of an operation that asks what it consumes.
// The input itself belongs to the caller of the SDK.
func askingUnits(input any) any {
	from := reflect.ValueOf(input).Elem()
	asking := reflect.New(from.Type())
	asking.Elem().Set(from)
	if ask := asking.Elem().FieldByName("ReturnConsumedCapacity"); ask.IsValid() {
		ask.Set(reflect.ValueOf(types.ReturnConsumedCapacityTotal))
	}
	return asking.Interface()
}

// units returns the capacity units that a reply says were consumed, nil if it does not.
func units(output any) *float64 {
	out := reflect.Indirect(reflect.ValueOf(output))
	if !out.IsValid() {
		return nil
	}
	consumed := out.FieldByName("ConsumedCapacity")
	if !consumed.IsValid() {
		return nil
	}
	var each []types.ConsumedCapacity
	switch c := consumed.Interface().(type) {
	case *types.ConsumedCapacity:
		if c != nil {
			each = append(each, *c)
		}
	case []types.ConsumedCapacity: // of a batch or a transaction: for each table
		each = c
	}
	if len(each) == 0 {
		return nil
	}
	sum := 0.0
	for _, c := range each {
		sum += aws.ToFloat64(c.CapacityUnits)
	}
	return &sum
}
