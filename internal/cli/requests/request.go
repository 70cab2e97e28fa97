package requests

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/decide"
)

// Request is what is known of a request when it has ended.
type Request struct {
	Operation string // such as UpdateItem
	Input     any    // of the operation
	Began     time.Time
	Took      time.Duration
	Err       error // nil: it did what it was to do

	Connection
	Reply
	Units *float64 // of capacity, as the reply says; nil: it does not
}

// Connection is what a request was sent over.
type Connection struct {
	Server string // address of the other end; empty: there was no connection
	Reused bool
	TLS    uint16 // version; 0: none
}

// Reply is what a reply says of itself. The zero value: there was none.
type Reply struct {
	Code   int    // such as 200
	Status string // the same with its name
	ID     string // of the request, by DynamoDB
	Date   time.Time
}

// Server is what answers requests.
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

// Throttled reports whether the reply was that there are too many requests.
func (r Request) Throttled() bool { return decide.Throttled(r.Err) }

// cancelled reports whether the request was given up here.
func (r Request) cancelled() bool { return errors.Is(r.Err, context.Canceled) }

// answered reports whether the request was done or refused.
func (r Request) answered() bool {
	return r.Err == nil || r.isRefusal() && !r.Throttled()
}

func (r Request) isRefusal() bool {
	return r.Code >= http.StatusBadRequest && r.Code < http.StatusInternalServerError
}

// outcome is "ok", an error code, or why there is no reply that says more.
func (r Request) outcome(from Server) string {
	var api smithy.APIError
	said := errors.As(r.Err, &api)
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
	case failure.IsTimeout(r.Err):
		return "no reply from " + from.Location
	}
	if send := (*smithyhttp.RequestSendError)(nil); errors.As(r.Err, &send) {
		return failure.Reason(send.Err) // without what the SDK says around it
	}
	return failure.Reason(r.Err)
}

// noCode is the SDK's code of an error whose reply has none.
const noCode = "UnknownError"
