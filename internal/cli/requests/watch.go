package requests

import (
	"context"
	"errors"
	"net"
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

// Watch observes the requests of a client. Several watches may observe one client.
type Watch struct {
	Health *Health       // nil if not needed
	Units  bool          // each request asks the server to report the consumed capacity
	Each   func(Request) // called at the end of each request, concurrently; nil if not needed
}

// Client is an option of dynamodb.New that makes w observe the new client.
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

// operation is one call of the client. The call sends one request, or several if the SDK
// repeats the request. An operation is itself a middleware. It can therefore hold the state
// of one call, since the SDK makes a new stack of middleware for each call.
type operation struct {
	name    string
	watches []Watch
	input   any
	open    []*Pending // one for each watch with a Health
	sent    bool       // a request was sent
}

func (*operation) ID() string { return middlewareID }

// HandleInitialize is called once for each operation.
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
	failed := &smithy.OperationError{ServiceID: dynamodb.ServiceID, OperationName: op.name, Err: err} // the error that the SDK returns to its caller
	if decide.NotSigned(failed) {
		for _, w := range op.watches {
			if w.Health != nil {
				w.Health.saw(Request{Operation: op.name, Input: op.input, Began: began, Took: time.Since(began), Err: failed})
			}
		}
	}
	return out, about, err
}

// HandleDeserialize is called once for each request, also if the SDK repeats an operation.
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
	if reply, ok := out.RawResponse.(*smithyhttp.Response); ok && reply.StatusCode != 0 { // the status code is 0 if there was no reply
		date, _ := http.ParseTime(reply.Header.Get("Date")) // zero if the reply has no date
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

// The inputs and outputs of operations have fields with the same names, but no common
// method or type. So the functions below find these fields by reflection.

// askingUnits returns a copy of an operation's input that asks for the consumed capacity.
// It does not change the input itself, which belongs to the caller of the SDK.
func askingUnits(input any) any {
	from := reflect.ValueOf(input).Elem()
	asking := reflect.New(from.Type())
	asking.Elem().Set(from)
	if ask := asking.Elem().FieldByName("ReturnConsumedCapacity"); ask.IsValid() {
		ask.Set(reflect.ValueOf(types.ReturnConsumedCapacityTotal))
	}
	return asking.Interface()
}

// units returns the capacity units in a reply; nil if it contains none.
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
	case []types.ConsumedCapacity: // the reply to a batch or a transaction has one element for each table
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

// Request is a request that has ended.
type Request struct {
	Operation string // name of the API operation, such as UpdateItem
	Input     any    // the operation's input
	Began     time.Time
	Took      time.Duration
	Err       error // nil if the request succeeded

	// The header of the reply. These fields are zero if there was no reply.
	Code   int    // status code, such as 200
	Status string // status code with its name
	ID     string // DynamoDB's id of the request
	Date   time.Time

	Units *float64 // consumed capacity; nil if the reply does not contain it
}

// Server is the destination of requests.
type Server struct {
	Location string // region, URL or file
	IsFile   bool
}

func (s Server) name() string {
	if s.IsFile {
		return s.Location
	}
	return "DynamoDB"
}

// Throttled reports whether the server rejected the request because there were too many
// requests.
func (r Request) Throttled() bool { return decide.Throttled(r.Err) }

// cancelled reports whether the command itself cancelled the request.
func (r Request) cancelled() bool { return errors.Is(r.Err, context.Canceled) }

// noSuchHost reports whether DNS has answered that the host does not exist. DNS gives this
// answer for a Region that AWS does not have. It may also give the answer temporarily, for
// a new name.
func (r Request) noSuchHost() bool {
	dns, is := failure.As[*net.DNSError](r.Err)
	return is && dns.IsNotFound
}

// answered reports whether DynamoDB has done or refused the request.
func (r Request) answered() bool {
	return r.Err == nil || r.isRefusal() && !r.Throttled()
}

func (r Request) isRefusal() bool {
	return r.Code >= http.StatusBadRequest && r.Code < http.StatusInternalServerError
}

// outcome returns "ok", an error code or a status. If there is no reply that contains one,
// outcome returns the reason.
func (r Request) outcome(from Server) string {
	api, said := failure.As[smithy.APIError](r.Err)
	switch {
	case r.Err == nil:
		return "ok"
	case r.cancelled():
		return "cancelled"
	case r.isRefusal() && said && api.ErrorCode() != noCode:
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
		return failure.Reason(send.Err) // the reason alone, without the text that the SDK adds
	}
	return failure.Reason(r.Err)
}

// noCode is the code that the SDK sets if an error reply contains no code.
const noCode = "UnknownError"
