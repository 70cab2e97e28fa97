package leasehold_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/localdynamo"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is one DynamoDB with a lock table, and the wires to it.
type world struct {
	t      *testing.T
	engine *localdynamo.Engine
	db     *dynamodb.Client // with no wire in between
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, engine: localdynamo.New()}
	t.Cleanup(func() { _ = w.engine.Close() })
	w.db = w.engine.Client()
	_, err := w.db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:            aws.String("locks"),
		BillingMode:          types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("key"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("key"), AttributeType: types.ScalarAttributeTypeS}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// inBubble runs a test in a synctest bubble with a world of its own: time is
// virtual, and whatever the test leaves running fails it.
func inBubble(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newWorld(t)) })
}

// config is what tests want unless they say otherwise.
func config() leasehold.Config {
	return leasehold.Config{Table: "locks", Owner: "test", Logger: slog.New(slog.DiscardHandler)}
}

// client returns a client as a process of its own would have, and its wire.
func (w *world) client(cfg leasehold.Config) (*leasehold.Client, *wire) {
	w.t.Helper()
	wire := &wire{engine: w.engine}
	c, err := leasehold.New(w.engine.Client(func(o *dynamodb.Options) { o.HTTPClient = wire }), cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	leasehold.VirtualClocks(c)
	return c, wire
}

func (w *world) acquire(c *leasehold.Client, key string, opts ...leasehold.AcquireOption) *leasehold.Lock {
	w.t.Helper()
	lock, err := c.Acquire(w.t.Context(), key, opts...)
	if err != nil {
		w.t.Fatal(err)
	}
	return lock
}

func (w *world) release(lock *leasehold.Lock, opts ...leasehold.ReleaseOption) {
	w.t.Helper()
	if err := lock.Release(w.t.Context(), opts...); err != nil {
		w.t.Fatal(err)
	}
}

// item reads a record as it is; nil: there is none.
func (w *world) item(key string) map[string]types.AttributeValue {
	w.t.Helper()
	out, err := w.db.GetItem(context.WithoutCancel(w.t.Context()), &dynamodb.GetItemInput{
		TableName: aws.String("locks"), Key: keyItem(key), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out.Item
}

// scan reads every item as it is.
func (w *world) scan() []map[string]types.AttributeValue {
	w.t.Helper()
	out, err := w.db.Scan(context.WithoutCancel(w.t.Context()), &dynamodb.ScanInput{TableName: aws.String("locks")})
	if err != nil {
		w.t.Fatal(err)
	}
	return out.Items
}

// put writes an item as it is.
func (w *world) put(item map[string]types.AttributeValue) {
	w.t.Helper()
	if _, err := w.db.PutItem(w.t.Context(), &dynamodb.PutItemInput{TableName: aws.String("locks"), Item: item}); err != nil {
		w.t.Fatal(err)
	}
}

// update changes attributes of a record; a nil value removes one.
func (w *world) update(key string, changes map[string]types.AttributeValue) {
	w.t.Helper()
	item := w.item(key)
	for name, v := range changes {
		if v == nil {
			delete(item, name)
		} else {
			item[name] = v
		}
	}
	w.put(item)
}

func (w *world) delete(key string) {
	w.t.Helper()
	if _, err := w.db.DeleteItem(w.t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("locks"), Key: keyItem(key)}); err != nil {
		w.t.Fatal(err)
	}
}

func keyItem(key string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"key": str(key)}
}

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func num(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }

func textOf(item map[string]types.AttributeValue, name string) string {
	if s, ok := item[name].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// call is one request on its way.
type call struct {
	op   string // UpdateItem, …
	body []byte
}

// grants reports whether the request asks for a grant, or for several.
func (c call) grants() bool {
	return c.writes("UpdateItem") && !c.commits() && bytes.Contains(c.body, []byte("if_not_exists")) || c.grantsReader()
}

// grantsReader reports whether the request asks for a reader's grant of a
// read/write lock.
func (c call) grantsReader() bool {
	return c.op == "UpdateItem" && c.sets("tokens") && !bytes.Contains(c.body, []byte("if_not_exists")) ||
		c.op == "UpdateItem" && bytes.Contains(c.body, []byte(`"tokens"`)) && bytes.Contains(c.body, []byte(" + :"))
}

// leavesRow reports whether the request removes an entry of a read/write lock.
func (c call) leavesRow() bool {
	return c.op == "UpdateItem" && (bytes.Contains(c.body, []byte(`"UpdateExpression":"REMOVE `)) || bytes.Contains(c.body, []byte(`"last":{"S":`)))
}

// writes reports whether the request is such a write, or a transaction of them.
func (c call) writes(op string) bool {
	parts := c.parts()
	return len(parts) > 0 && parts[0].op == op
}

// parts returns the writes of a request, which are those of its transaction if
// it is one.
func (c call) parts() []call {
	if c.op != "TransactWriteItems" {
		return []call{c}
	}
	var in struct{ TransactItems []map[string]json.RawMessage }
	_ = json.Unmarshal(c.body, &in)
	var parts []call
	for _, item := range in.TransactItems {
		for op, body := range item {
			if op != "ConditionCheck" {
				op += "Item"
			}
			parts = append(parts, call{op, body})
		}
	}
	return parts
}

// handsOver reports whether a grant is asked for out of one's own hands.
func (c call) handsOver() bool {
	return c.grants() && !c.grantsReader() && !bytes.Contains(c.body, []byte(" OR ("))
}

func (c call) releases() bool {
	if c.commits() {
		return c.endsLock()
	}
	return c.writes("DeleteItem") || c.writes("UpdateItem") && c.parts()[0].sets("isReleased") || c.leavesRow()
}

// endsLock reports whether the transaction writes to the record of a lock.
func (c call) endsLock() bool {
	for _, item := range transactItems(c.body) {
		if w := cmp.Or(item.Update, item.Delete); w != nil && w.TableName == "locks" {
			return true
		}
	}
	return false
}

// transactItem is an item of a transaction on its way.
type transactItem struct{ Update, Delete, ConditionCheck *transactWrite }

type transactWrite struct {
	TableName string
	Key       map[string]struct{ S string }
}

func transactItems(body []byte) []transactItem {
	var in struct{ TransactItems []transactItem }
	_ = json.Unmarshal(body, &in)
	return in.TransactItems
}

// commits reports whether the request is a transaction of a caller's writes or
// guards, and not of grants or releases alone.
func (c call) commits() bool {
	return c.op == "TransactWriteItems" && slices.ContainsFunc(transactItems(c.body), func(i transactItem) bool {
		w := cmp.Or(i.Update, i.Delete)
		return w == nil || w.TableName != "locks"
	})
}

func (c call) renews() bool {
	return c.writes("UpdateItem") && !c.grants() && !c.releases() && !c.commits()
}

// sets reports whether the update sets the attribute.
func (c call) sets(name string) bool {
	var in struct {
		UpdateExpression         string
		ExpressionAttributeNames map[string]string
	}
	if json.Unmarshal(c.body, &in) != nil {
		return false
	}
	set, _, _ := strings.Cut(in.UpdateExpression, " REMOVE ")
	for placeholder, n := range in.ExpressionAttributeNames {
		if n == name && strings.Contains(set, placeholder+" = ") {
			return true
		}
	}
	return false
}

// wire is the network between one client and the engine. Faults decide about
// each request: they may pass it on with next, once, never or twice.
type wire struct {
	engine *localdynamo.Engine

	meter *meter // nil: does not ask what requests cost

	mu    sync.Mutex
	calls []call
	fault func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error)
}

// reset is how a broken connection looks.
var errReset = errors.New("connection reset by peer")

func (w *wire) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	c := call{op: op, body: body}
	w.mu.Lock()
	w.calls = append(w.calls, c)
	fault := w.fault
	w.mu.Unlock()
	next := func() (*http.Response, error) {
		again := r.Clone(context.WithoutCancel(r.Context()))
		again.Body = io.NopCloser(bytes.NewReader(w.meter.ask(body)))
		again.ContentLength = -1
		res, err := w.engine.RoundTrip(again)
		w.meter.read(op, res)
		return res, err
	}
	if fault == nil {
		return next()
	}
	return fault(r.Context(), c, next)
}

// units are capacity units.
type units struct{ read, write float64 }

// meter counts what requests consume. A nil meter does nothing.
type meter struct {
	mu   sync.Mutex
	used units
}

// ask has the reply say what the request consumed.
func (m *meter) ask(body []byte) []byte {
	if m == nil {
		return body
	}
	return append([]byte(`{"ReturnConsumedCapacity":"TOTAL",`), body[1:]...)
}

func (m *meter) read(op string, res *http.Response) {
	if m == nil || res == nil {
		return
	}
	body, _ := io.ReadAll(res.Body)
	res.Body = io.NopCloser(bytes.NewReader(body))
	type capacity struct{ CapacityUnits float64 }
	var one struct{ ConsumedCapacity capacity }
	var perTable struct{ ConsumedCapacity []capacity } // of a transaction
	_, _ = json.Unmarshal(body, &one), json.Unmarshal(body, &perTable)
	used := one.ConsumedCapacity.CapacityUnits
	for _, c := range perTable.ConsumedCapacity {
		used += c.CapacityUnits
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if bytes.Contains(body, []byte("#ConditionalCheckFailedException")) {
		used = 1 // charged like one that landed, though the reply does not say so
	}
	if op == "GetItem" || op == "BatchGetItem" || op == "TransactGetItems" || op == "Query" || op == "Scan" {
		m.used.read += used
	} else {
		m.used.write += used
	}
}

func (m *meter) reset() units {
	m.mu.Lock()
	defer m.mu.Unlock()
	used := m.used
	m.used = units{}
	return used
}

// setFault puts a fault on the wire; nil mends it.
func (w *wire) setFault(f func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault = f
}

// sent returns the requests since the last call of sent.
func (w *wire) sent() []call {
	w.mu.Lock()
	defer w.mu.Unlock()
	calls := w.calls
	w.calls = nil
	return calls
}

// refusal is a reply with an error of DynamoDB.
func refusal(status int, code string) *http.Response {
	body := `{"__type":"com.amazonaws.dynamodb.v20120810#` + code + `","message":"` + code + `"}`
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body:   io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// conflict is what DynamoDB answers while another transaction has an item of
// the request.
func conflict(c call) *http.Response {
	if c.op != "TransactWriteItems" {
		return refusal(400, "TransactionConflictException")
	}
	codes := slices.Repeat([]string{"None"}, len(c.parts()))
	codes[0] = "TransactionConflict"
	return cancellation(codes...)
}

// cancellation is a reply that cancels a transaction for these reasons.
func cancellation(codes ...string) *http.Response {
	reasons := make([]string, len(codes))
	for i, c := range codes {
		reasons[i] = `{"Code":"` + c + `"}`
	}
	body := `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","Message":"cancelled","CancellationReasons":[` +
		strings.Join(reasons, ",") + `]}`
	res := refusal(400, "TransactionCanceledException")
	res.Body, res.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	return res
}

// hang never answers.
func hang(ctx context.Context) (*http.Response, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// cut hangs every request: a partition, or a process that died.
func cut(ctx context.Context, _ call, _ func() (*http.Response, error)) (*http.Response, error) {
	return hang(ctx)
}

// once applies a fault to the first request that fits, and passes the others on.
func once(fits func(call) bool, fault func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error)) func(context.Context, call, func() (*http.Response, error)) (*http.Response, error) {
	var mu sync.Mutex
	done := false
	return func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
		mu.Lock()
		hit := !done && fits(c)
		done = done || hit
		mu.Unlock()
		if hit {
			return fault(ctx, c, next)
		}
		return next()
	}
}

// loseReply applies the write and resets the connection before its reply.
func loseReply(_ context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
	_, _ = next()
	return nil, errReset
}

// elapse lets virtual time pass.
func elapse(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// slow delivers at once and answers late.
func slow(d time.Duration) func(context.Context, call, func() (*http.Response, error)) (*http.Response, error) {
	return func(ctx context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
		res, err := next()
		select {
		case <-time.After(d):
			return res, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
