package requests

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/decide"
)

// Watch configures what is done for each request of a client. One client may have several
// Watches.
type Watch struct {
	Health *Health       // records which requests are answered; nil for none
	Units  bool          // if true, each request asks DynamoDB to report the consumed capacity
	Each   func(Request) // called after each request, maybe concurrently; may be nil
}

// Client is an option for dynamodb.New. It makes the new client report each request to w.
func (w Watch) Client(o *dynamodb.Options) {
	o.APIOptions = append(slices.Clip(o.APIOptions), func(stack *middleware.Stack) error {
		if before, ok := stack.Initialize.Get(middlewareID); ok {
			op := before.(*operation)
			op.watches = append(op.watches, w)
			return nil
		}
		op := &operation{name: stack.ID(), watches: []Watch{w}}
		return errors.Join(stack.Initialize.Add(op, middleware.Before), stack.Deserialize.Add(op, middleware.Before))
	})
}

const middlewareID = "leasehold: watch requests"

// operation is the SDK middleware that observes the requests of one call of a client
// method, such as UpdateItem. There are several requests if the SDK retries. The SDK makes
// a new middleware for each call, so operation also contains the state of that call.
type operation struct {
	name    string
	watches []Watch
	input   any
	open    []*Pending // one for each watch whose Health is set
	sent    bool       // true once a request was sent
}

func (*operation) ID() string { return middlewareID }

// HandleInitialize is called by the SDK once for each operation. If the SDK sends no request
// because it cannot sign one, for example without credentials, HandleInitialize reports this
// failure to the Health of each Watch.
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
	began := time.Now()
	out, about, err := next.HandleInitialize(ctx, in)
	if err == nil || op.sent {
		return out, about, err
	}
	failed := &smithy.OperationError{ServiceID: dynamodb.ServiceID, OperationName: op.name, Err: err} // err in the form in which the SDK returns it to its caller
	if decide.NotSigned(failed) {
		for _, p := range op.open {
			p.of.saw(Request{Operation: op.name, Input: op.input, Began: began, Took: time.Since(began), Err: failed})
		}
	}
	return out, about, err
}

// HandleDeserialize is called by the SDK once for each request, so several times if the SDK
// retries.
func (op *operation) HandleDeserialize(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (
	middleware.DeserializeOutput, middleware.Metadata, error,
) {
	op.sent = true
	for _, p := range op.open {
		p.sent()
	}
	r := Request{Operation: op.name, Input: op.input, Began: time.Now()}
	out, about, err := next.HandleDeserialize(ctx, in)
	r.Took, r.Err, r.Units = time.Since(r.Began), err, units(out.Result)
	if reply, ok := out.RawResponse.(*smithyhttp.Response); ok && reply.StatusCode != 0 { // zero if there was no reply
		date, _ := http.ParseTime(reply.Header.Get("Date")) // zero if the reply has no Date header
		r.Code, r.Status, r.ID, r.Date = reply.StatusCode, reply.Status, reply.Header.Get("X-Amzn-Requestid"), date
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

// The inputs of different operations have fields of the same name, but no common method or
// interface. The same is true of the outputs. So the functions below use reflection.

// askingUnits returns a copy of an operation's input that also asks for the consumed
// capacity. The original belongs to the caller of the SDK and must not change.
func askingUnits(input any) any {
	from := reflect.ValueOf(input).Elem()
	asking := reflect.New(from.Type())
	asking.Elem().Set(from)
	if ask := asking.Elem().FieldByName("ReturnConsumedCapacity"); ask.IsValid() {
		ask.Set(reflect.ValueOf(types.ReturnConsumedCapacityTotal))
	}
	return asking.Interface()
}

// units returns the consumed capacity units in an operation's output. It returns nil if the
// output contains none.
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
	case []types.ConsumedCapacity: // output of a batch or transaction: one element for each table
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

// Request is one request to DynamoDB that has ended.
type Request struct {
	Operation string // name of the DynamoDB operation, such as UpdateItem
	Input     any    // input of the operation, such as *dynamodb.UpdateItemInput
	Began     time.Time
	Took      time.Duration
	Err       error // nil if the request succeeded

	// From the headers of the reply. These fields are zero if there was no reply.
	Code   int    // status code, such as 200
	Status string // status code with its text, such as "200 OK"
	ID     string // request id that DynamoDB assigned
	Date   time.Time

	Units *float64 // consumed capacity; nil if the reply does not contain it
}

// Server is the destination of requests: DynamoDB, or the file of a local store.
type Server struct {
	Location string // Region, endpoint URL or file path
	IsFile   bool
}

func (s Server) name() string {
	if s.IsFile {
		return s.Location
	}
	return "DynamoDB"
}

// Throttled reports whether DynamoDB rejected the request because it received too many requests.
func (r Request) Throttled() bool { return decide.Throttled(r.Err) }

// cancelled reports whether the request failed because leasehold cancelled it.
func (r Request) cancelled() bool { return errors.Is(r.Err, context.Canceled) }

// answered reports whether DynamoDB executed the request, or rejected it for a reason that a wait
// does not outlast: neither throttling, nor the credentials or rights of the caller.
func (r Request) answered() bool {
	return r.Err == nil || r.isRefusal() && !r.Throttled() && !decide.CredentialsRefused(r.Err) && !decide.Denied(r.Err)
}

// isRefusal reports whether DynamoDB rejected the request. It returns false if the reply has no error
// code of DynamoDB, because then a proxy or another server may have sent it.
func (r Request) isRefusal() bool {
	api, said := failure.As[smithy.APIError](r.Err)
	return said && api.ErrorCode() != noCode && r.Code >= http.StatusBadRequest && r.Code < http.StatusInternalServerError
}

// outcome returns "ok", the error code of DynamoDB, or the HTTP status of the reply. If
// there was no reply, it returns the reason.
func (r Request) outcome(from Server) string {
	api, said := failure.As[smithy.APIError](r.Err)
	switch {
	case r.Err == nil:
		return "ok"
	case r.cancelled():
		return "cancelled"
	case r.isRefusal():
		return api.ErrorCode()
	case r.Code >= http.StatusInternalServerError && from.IsFile && said && api.ErrorMessage() != "":
		return strings.TrimPrefix(api.ErrorMessage(), "boltstore: ")
	case r.Code >= http.StatusBadRequest:
		return r.Status
	case failure.IsTimeout(r.Err) && decide.NotSigned(r.Err):
		return "what provides them does not answer"
	case failure.IsTimeout(r.Err):
		return "no reply from " + from.Location
	}
	if send, is := failure.As[*smithyhttp.RequestSendError](r.Err); is {
		return failure.Reason(send.Err) // send.Err lacks the text "request send failed" that the SDK adds
	}
	return failure.Reason(r.Err)
}

// noCode is the error code that the SDK sets if an error reply contains none.
const noCode = "UnknownError"
