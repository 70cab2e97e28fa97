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
)

// trace watches every request, to log it with -v and to know for how long
// DynamoDB has not answered.
func (a *app) trace(s *store) func(*dynamodb.Options) {
	return func(o *dynamodb.Options) {
		o.HTTPClient = &tracer{next: o.HTTPClient, store: s, say: a.say, verbose: a.flags.verbose}
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Initialize.Add(watchCalls{&s.health}, middleware.Before)
		})
	}
}

// watchCalls tells health of every call. It is a middleware of the SDK.
type watchCalls struct{ health *health }

func (watchCalls) ID() string { return "leasehold: watch calls" }

func (w watchCalls) HandleInitialize(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
	middleware.InitializeOutput, middleware.Metadata, error,
) {
	c := &call{}
	defer w.health.begin(c)()
	return next.HandleInitialize(context.WithValue(ctx, callKey{}, c), in)
}

// callKey is where the context of a request keeps its call.
type callKey struct{}

type tracer struct {
	next    aws.HTTPClient
	store   *store
	say     *messages
	verbose bool
}

func (t *tracer) Do(r *http.Request) (*http.Response, error) {
	t.store.requests.RLock()
	defer t.store.requests.RUnlock()
	health := &t.store.health
	if c, ok := r.Context().Value(callKey{}).(*call); ok {
		health.sending(c)
	}
	began := time.Now()
	response, err := t.next.Do(r)
	took := time.Since(began).Round(100 * time.Microsecond)
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	switch {
	case err != nil:
		if r.Context().Err() != context.Canceled { // a cancelled request says nothing about DynamoDB
			health.failed(noReply(err, t.store.location), began)
		}
		t.log("%s: %v in %v", operation, oneLine(err.Error()), took)
	case response.StatusCode >= http.StatusInternalServerError:
		health.failed(response.Status, began)
		t.log("%s: %s in %v", operation, response.Status, took)
	case response.StatusCode >= http.StatusBadRequest:
		code := errorCode(response)
		if isThrottling(code) {
			health.throttled(code, began)
		} else {
			health.answered()
		}
		t.log("%s: %s in %v", operation, code, took)
	default:
		health.answered()
		t.log("%s: %d in %v", operation, response.StatusCode, took)
	}
	return response, err
}

// noReply says why a request got no reply.
func noReply(err error, location string) string {
	if isTimeout(err) {
		return "no reply from " + location
	}
	return reason(err)
}

func (t *tracer) log(format string, args ...any) {
	if t.verbose {
		t.say.note(format, args...)
	}
}

// errorCode reads DynamoDB's error code, and leaves the body to be read again.
func errorCode(r *http.Response) string {
	const longest = 64 << 10
	head, err := io.ReadAll(io.LimitReader(r.Body, longest))
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), r.Body), r.Body}
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
