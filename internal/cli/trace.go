package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"

	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/decide"
)

// trace watches every request, to log it with -v and to know for how long
// DynamoDB has not answered.
func (a *app) trace(s *store.Store) func(*dynamodb.Options) {
	var log *requestLog
	if a.flags.verbose {
		log = a.newRequestLog(s)
	}
	return func(o *dynamodb.Options) {
		o.HTTPClient = &tracer{next: o.HTTPClient, app: a, store: s, log: log}
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Initialize.Add(watchCalls{&a.health, log}, middleware.Before)
		})
	}
}

// watchCalls tells health of every call. It is a middleware of the SDK.
type watchCalls struct {
	health *health
	log    *requestLog // nil: not with -v
}

func (watchCalls) ID() string { return "leasehold: watch calls" }

func (w watchCalls) HandleInitialize(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
	middleware.InitializeOutput, middleware.Metadata, error,
) {
	c := &call{}
	if w.log != nil {
		in.Parameters, c.keys = askingUnits(in.Parameters), w.log.keysOf(in.Parameters)
	}
	defer w.health.begin(c)()
	return next.HandleInitialize(context.WithValue(ctx, callKey{}, c), in)
}

// callKey is where the context of a request keeps its call.
type callKey struct{}

type tracer struct {
	next  aws.HTTPClient
	app   *app
	store *store.Store
	log   *requestLog // nil: not with -v
}

func (t *tracer) Do(r *http.Request) (*http.Response, error) {
	t.app.sending.RLock()
	defer t.app.sending.RUnlock()
	health := &t.app.health
	c, ok := r.Context().Value(callKey{}).(*call)
	if !ok {
		c = &call{}
	}
	health.sending(c)
	began := time.Now()
	response, err := t.next.Do(r)
	did := request{keys: c.keys, took: time.Since(began)}
	_, did.operation, _ = strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	switch {
	case err != nil:
		did.outcome = noReply(err, t.store.Location)
		if r.Context().Err() == context.Canceled { // that says nothing about DynamoDB
			did.outcome = "cancelled"
		} else {
			health.failed(did.outcome, began)
		}
	case response.StatusCode >= http.StatusInternalServerError:
		did.outcome = response.Status
		if t.store.File != "" {
			did.outcome = errorMessage(response)
		}
		health.failed(did.outcome, began)
	case response.StatusCode >= http.StatusBadRequest:
		did.outcome = errorCode(response)
		if decide.IsThrottling(did.outcome) {
			health.throttled(did.outcome, began)
		} else {
			did.answered = true
			health.answered()
		}
	default:
		did.outcome, did.answered = "ok", true
		health.answered()
	}
	if t.log != nil {
		if response != nil {
			did.id, did.units = response.Header.Get("X-Amzn-Requestid"), consumed(response)
		}
		t.log.log(did)
	}
	return response, err
}

// noReply says why a request got no reply.
func noReply(err error, location string) string {
	if failure.IsTimeout(err) {
		return "no reply from " + location
	}
	return failure.Reason(err)
}

// errorCode reads DynamoDB's error code, and leaves the body to be read again.
func errorCode(r *http.Response) string {
	head, err := peek(r, 64<<10)
	var body struct {
		Type string `json:"__type"`
	}
	if err != nil || json.Unmarshal(head, &body) != nil || body.Type == "" {
		return r.Status
	}
	_, code, found := strings.Cut(body.Type, "#")
	if !found {
		code = body.Type
	}
	return code
}

// errorMessage reads what the engine of a local store says, and leaves the body to be
// read again.
func errorMessage(r *http.Response) string {
	head, err := peek(r, 64<<10)
	var body struct {
		Message string `json:"message"`
	}
	if err != nil || json.Unmarshal(head, &body) != nil || body.Message == "" {
		return r.Status
	}
	return strings.TrimPrefix(body.Message, "boltstore: ")
}

// peek reads a reply, up to its longest first bytes, and leaves it to be read again.
func peek(r *http.Response, longest int64) ([]byte, error) {
	head, err := io.ReadAll(io.LimitReader(r.Body, longest))
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), r.Body), r.Body}
	return head, err
}
