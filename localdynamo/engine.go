package localdynamo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	smithyendpoints "github.com/aws/smithy-go/endpoints"
	"github.com/leasehold-go/leasehold/internal/filefault"
	"github.com/leasehold-go/leasehold/localdynamo/expr"
)

// maxBody is the maximum number of bytes in the body of a request. DynamoDB has the same limit.
const maxBody = 16 << 20

// Engine is an in-process DynamoDB. It is an http.RoundTripper for clients in the same process,
// and an http.Handler for clients that use the network. It is safe for concurrent use.
type Engine struct {
	store       Store
	key         *accessKey // nil if ServeHTTP also answers unsigned requests
	tables      *cache[*table]
	conditions  *cache[expr.Condition]
	updates     *cache[*expr.Update]
	projections *cache[[]expr.Path]
	bodies      *bodies
	requests    atomic.Uint64
	// Set of the operations that have made the engine panic. An operation is named by the value of
	// the header X-Amz-Target.
	panics sync.Map
	closed atomic.Bool
}

// Option is an option of New.
type Option func(*Engine)

// WithStore makes the engine keep its tables in s instead of memory. Engine.Close closes s.
func WithStore(s Store) Option { return func(e *Engine) { e.store = s } }

// New returns an engine without tables.
func New(opts ...Option) *Engine {
	e := &Engine{
		tables:      newCache(parseTable),
		conditions:  newCache(expr.ParseCondition),
		updates:     newCache(expr.ParseUpdate),
		projections: newCache(expr.ParseProjection),
		bodies:      newBodies(maxLarge),
	}
	for _, opt := range opts {
		opt(e)
	}
	if e.store == nil {
		e.store = newMemory()
	}
	return e
}

// Close closes the engine's store. Later requests fail. Close may be called more than once.
func (e *Engine) Close() error {
	e.closed.Store(true)
	return e.store.Close()
}

var errClosed = errors.New("localdynamo: the engine is closed")

// Client returns an SDK client whose requests the engine answers, with Region "local" and
// placeholder credentials. It opens no socket, and starts no goroutine that outlives a call, so it
// works in testing/synctest. It retries like every SDK client, unless optFns sets other retries.
func (e *Engine) Client(optFns ...func(*dynamodb.Options)) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region:             "local",
		EndpointResolverV2: direct{e},
		Credentials:        credentials.NewStaticCredentialsProvider("local", "local", ""),
		HTTPClient:         direct{e},
	}, optFns...)
}

// direct passes the requests of an SDK client to the engine, without an http.Client between the
// two. An http.Client would only add support for redirects, and the engine sends none.
type direct struct{ engine *Engine }

// ResolveEndpoint returns a fixed address, to which nothing connects. Without this method, the
// SDK would use its own resolver, which compiles regular expressions in each call. That would
// take longer than the rest of the call.
func (direct) ResolveEndpoint(context.Context, dynamodb.EndpointParameters) (smithyendpoints.Endpoint, error) {
	return smithyendpoints.Endpoint{URI: url.URL{Scheme: "http", Host: "localdynamo"}}, nil
}

// Do passes a request to the engine, and returns the engine's response.
func (d direct) Do(r *http.Request) (*http.Response, error) { return d.engine.RoundTrip(r) }

// RoundTrip answers one DynamoDB request. It returns an error only if the body cannot be read,
// the request's context has been cancelled, or the engine is closed. In these cases the request
// has changed nothing.
func (e *Engine) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	status, reply, err := e.answer(r.Context(), r.Header.Get("X-Amz-Target"), body)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status:        strconv.Itoa(status) + " " + http.StatusText(status),
		StatusCode:    status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        e.header(reply),
		Body:          io.NopCloser(bytes.NewReader(reply)),
		ContentLength: int64(len(reply)),
		Request:       r,
	}, nil
}

// ServeHTTP answers one DynamoDB request. It checks no credentials unless the engine was made
// with WithAccessKey, so let the server listen on loopback only. ServeHTTP refuses requests from
// web pages, because a browser lets a page of any site send requests to loopback.
//
// Set the timeouts of the http.Server: they limit how long ServeHTTP waits for a body. Together,
// all bodies of more than 64 KB take at most 64 MB of memory. If such a body does not fit, its
// request waits for up to 30 seconds, and is then refused. Requests with smaller bodies do not
// wait. If a body is too large, the client receives the error before the connection is closed.
func (e *Engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, reply, err := e.serve(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	// A client that sends the header Expect has not sent its body yet, so there is no body to
	// drain.
	if status == http.StatusRequestEntityTooLarge && r.Header.Get("Expect") == "" {
		defer drain(w, r)()
	}
	for name, values := range e.header(reply) {
		w.Header()[name] = values
	}
	w.WriteHeader(status)
	_, _ = w.Write(reply) // an error means that the client has closed the connection
}

// serve answers one request from the network. It returns an error only if the request's context
// has been cancelled, or the engine is closed.
func (e *Engine) serve(r *http.Request) (status int, reply []byte, err error) {
	refuse := func(why *apiError) (int, []byte, error) { return why.status, errorReply(why), nil }
	switch {
	case r.Method != http.MethodPost:
		return refuse(newError(typeUnknown, "a DynamoDB request is a POST, and this is a "+r.Method))
	case r.Header.Get("Origin") != "":
		// Every browser sends the header Origin with a POST, and no script can omit it. So this
		// check refuses all pages, even those of a site that has pointed its DNS name to this
		// machine.
		return refuse(&apiError{status: http.StatusForbidden, kind: typeDenied, message: "the request comes from a page in a browser"})
	}
	var signed *signature
	if e.key != nil {
		var why *apiError
		if signed, why = e.key.claimed(r); why != nil {
			return refuse(why)
		}
	}
	body, done, err := e.bodies.read(r)
	defer done()
	var why *apiError
	switch {
	case errors.As(err, &why):
		return refuse(why)
	case err != nil:
		return refuse(malformed("the body could not be read: " + err.Error()))
	}
	if signed != nil && !signed.isOf(r, body, e.key) {
		return refuse(newError(typeSignature, "The request signature we calculated does not match the signature you provided"+keyAdvice))
	}
	return e.answer(r.Context(), r.Header.Get("X-Amz-Target"), body)
}

func (e *Engine) header(reply []byte) http.Header {
	return http.Header{
		"Content-Type":     {"application/x-amz-json-1.0"},
		"Content-Length":   {strconv.Itoa(len(reply))},
		"X-Amzn-Requestid": {strconv.FormatUint(e.requests.Add(1), 10)},
		"X-Amz-Crc32":      {strconv.FormatUint(uint64(crc32.ChecksumIEEE(reply)), 10)},
	}
}

// readBody reads and closes the request's body.
func readBody(r *http.Request) (string, error) {
	if r.Body == nil {
		return "", nil
	}
	defer func() { _ = r.Body.Close() }() // the error is ignored, because the whole body has been read
	limited := io.LimitReader(r.Body, maxBody+1)
	if r.ContentLength <= 0 || r.ContentLength > maxBody {
		body, err := io.ReadAll(limited)
		return string(body), err
	}
	body := make([]byte, r.ContentLength) // the length is known, so one allocation is enough
	n, err := io.ReadFull(limited, body)
	return string(body[:n]), err
}

// answer executes one request. It returns an error only if ctx has been cancelled, or the engine
// is closed.
func (e *Engine) answer(ctx context.Context, target, body string) (status int, reply []byte, err error) {
	if err := ctx.Err(); err != nil {
		return 0, nil, err
	}
	if e.closed.Load() {
		return 0, nil, errClosed
	}
	defer func() {
		if p := recover(); p != nil {
			refused := e.panicked(target, p)
			status, reply, err = refused.status, errorReply(refused), nil
		}
	}()
	reply, err = e.call(ctx, target, body)
	var refused *apiError
	switch {
	case err == nil:
		return http.StatusOK, reply, nil
	case errors.As(err, &refused):
	case filefault.IsLasting(err):
		refused = newError(typeUnusable, err.Error())
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return 0, nil, err
	default:
		refused = internalError(err.Error())
	}
	return refused.status, errorReply(refused), nil
}

// panicked returns the error for a request that made the engine or its store panic. The store has
// already undone the changes of this request. The method logs only the first panic of each
// operation, because clients retry the request, and every retry may panic.
func (e *Engine) panicked(target string, p any) *apiError {
	if _, before := e.panics.LoadOrStore(target, true); !before {
		slog.Error("localdynamo: a request made the engine panic; nothing of it was stored", "operation", target, "panic", p, "stack", string(debug.Stack()))
	}
	return internalError(fmt.Sprintf("the engine panicked, and nothing of the request was stored: %v", p))
}

// call executes an operation. The parameter "target" is the value of the header X-Amz-Target, which
// contains the operation's name.
func (e *Engine) call(ctx context.Context, target, body string) ([]byte, error) {
	if len(body) > maxBody {
		return nil, errTooLarge
	}
	name, ok := strings.CutPrefix(target, "DynamoDB_20120810.")
	if !ok {
		return nil, newError(typeUnknown, "no DynamoDB operation in the header X-Amz-Target")
	}
	if op, ok := itemCalls[name]; ok {
		req, err := readRequest(body)
		if err != nil {
			return nil, err
		}
		return op(e, ctx, req)
	}
	if op, ok := tableCalls[name]; ok {
		return op(e, ctx, body)
	}
	return nil, newError(typeUnknown, "localdynamo does not know the operation "+name)
}

// itemCalls contains the operations on items, and tableCalls the operations on tables.
var (
	itemCalls = map[string]func(*Engine, context.Context, *request) ([]byte, error){
		"GetItem":            (*Engine).getItem,
		"PutItem":            (*Engine).putItem,
		"UpdateItem":         (*Engine).updateItem,
		"DeleteItem":         (*Engine).deleteItem,
		"Query":              (*Engine).query,
		"Scan":               (*Engine).scan,
		"BatchGetItem":       (*Engine).batchGetItem,
		"BatchWriteItem":     (*Engine).batchWriteItem,
		"TransactGetItems":   (*Engine).transactGetItems,
		"TransactWriteItems": (*Engine).transactWriteItems,
	}
	tableCalls = map[string]func(*Engine, context.Context, string) ([]byte, error){
		"CreateTable":        (*Engine).createTable,
		"DescribeTable":      (*Engine).describeTable,
		"DeleteTable":        (*Engine).deleteTable,
		"ListTables":         (*Engine).listTables,
		"UpdateTable":        (*Engine).updateTable,
		"UpdateTimeToLive":   (*Engine).updateTimeToLive,
		"DescribeTimeToLive": (*Engine).describeTimeToLive,
		"TagResource":        (*Engine).tagResource,
		"UntagResource":      (*Engine).untagResource,
		"ListTagsOfResource": (*Engine).listTagsOfResource,
		"DescribeLimits":     (*Engine).describeLimits,
		"DescribeEndpoints":  (*Engine).describeEndpoints,
	}
)

// contextStore is a Store that can return a copy of itself for one context. Once the context is
// cancelled, the copy starts no more transactions: View and Update return an error.
type contextStore interface {
	WithContext(ctx context.Context) Store
}

func (e *Engine) storeFor(ctx context.Context) Store {
	if s, ok := e.store.(contextStore); ok {
		return s.WithContext(ctx)
	}
	return e.store
}

// view calls fn in a read-only transaction, unless ctx is cancelled before the transaction starts.
func (e *Engine) view(ctx context.Context, fn func(Tx) error) error {
	return e.storeFor(ctx).View(func(tx Tx) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return fn(tx)
	})
}

// change calls fn in a read-write transaction, unless ctx is cancelled before the transaction
// starts.
func (e *Engine) change(ctx context.Context, fn func(Tx) error) error {
	return e.storeFor(ctx).Update(func(tx Tx) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return fn(tx)
	})
}
