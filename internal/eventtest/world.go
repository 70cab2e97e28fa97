package eventtest

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

// lease is long: the clock that runs on in suspend is real in a bubble, and no
// lease is to run out by how long a test takes on a machine that is busy.
const lease = 5 * time.Minute

// World is a DynamoDB with a lock table, "locks".
type World struct {
	t      testing.TB
	engine *localdynamo.Engine
	db     *dynamodb.Client
}

// New returns a World that ends with the test.
func New(t testing.TB) *World {
	t.Helper()
	w := &World{t: t, engine: localdynamo.New()}
	t.Cleanup(func() { _ = w.engine.Close() }) // it is in memory
	w.db = w.engine.Client()
	if err := table.Create(t.Context(), w.db, table.Spec{Name: "locks"}); err != nil {
		t.Fatal(err)
	}
	return w
}

// Client returns a client as a process of its own would have, and its network.
func (w *World) Client(onEvent func(context.Context, leasehold.Event)) (*leasehold.Client, *Wire) {
	w.t.Helper()
	wire := &Wire{engine: w.engine}
	c, err := leasehold.New(w.engine.Client(func(o *dynamodb.Options) { o.HTTPClient = wire }), leasehold.Config{
		Table: "locks", Owner: "test", Lease: lease, Logger: slog.New(slog.DiscardHandler), OnEvent: onEvent,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return c, wire
}

// Acquire acquires a key for the test.
func (w *World) Acquire(ctx context.Context, c *leasehold.Client, key string) *leasehold.Lock {
	w.t.Helper()
	lock, err := c.Acquire(ctx, key)
	if err != nil {
		w.t.Fatal(err)
	}
	return lock
}

// Release releases a lock for the test.
func (w *World) Release(lock *leasehold.Lock) {
	w.t.Helper()
	if err := lock.Release(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// Break frees a key whose holder believes in it.
func (w *World) Break(c *leasehold.Client, key string) {
	w.t.Helper()
	r, err := c.Get(w.t.Context(), key)
	if err == nil {
		err = c.Break(w.t.Context(), r)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// missing is a write that fails by its own condition.
func missing() types.TransactWriteItem {
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: aws.String("locks"), Key: map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: "no such key"}},
		ConditionExpression: aws.String("attribute_exists(#k)"), ExpressionAttributeNames: map[string]string{"#k": "key"},
	}}
}

// Wire is the network between one client and the engine: it counts what is
// sent.
type Wire struct {
	engine *localdynamo.Engine

	mu       sync.Mutex
	sent     int
	throttle string // the next request of this operation is throttled
	cut      bool   // nothing arrives
}

var errCut = errors.New("no route to host")

// Do passes a request on, or does not.
func (w *Wire) Do(r *http.Request) (*http.Response, error) {
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	w.mu.Lock()
	w.sent++
	cut, throttled := w.cut, w.throttle == op
	if throttled {
		w.throttle = ""
	}
	w.mu.Unlock()
	switch {
	case cut:
		return nil, errCut
	case throttled:
		return refusal("ThrottlingException"), nil
	}
	return w.engine.RoundTrip(r)
}

func refusal(code string) *http.Response {
	body := `{"__type":"com.amazonaws.dynamodb.v20120810#` + code + `","message":"` + code + `"}`
	return &http.Response{
		StatusCode: http.StatusBadRequest, ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body:   io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// Throttle has the next request of an operation throttled.
func (w *Wire) Throttle(op string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.throttle = op
}

// Cut loses every request from now on, Mend none.
func (w *Wire) Cut() { w.setCut(true) }

// Mend undoes Cut.
func (w *Wire) Mend() { w.setCut(false) }

func (w *Wire) setCut(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
}

// Sent returns the number of requests.
func (w *Wire) Sent() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent
}
