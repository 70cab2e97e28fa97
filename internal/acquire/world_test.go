package acquire_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/leasehold-go/leasehold/internal/acquire"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/machine"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

var timing = lease.Timing{Lease: 20 * time.Second, Margin: 2 * time.Second, Every: 5 * time.Second}

// world is one table, and counts the requests of each client of the table.
type world struct {
	*testing.T
	*dynamodb.Client
	proto   protocol.Protocol
	now     func() decide.Instant
	clients []*client
}

// within returns a context that ends after d, or when the test ends.
func (w *world) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(w.Context(), d)
	w.Cleanup(cancel)
	return ctx
}

// inWorld runs a test in a new world. Afterwards it waits until the calls and
// goroutines of the test's clients have ended.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	inWorldOf(t, layout.Native{}, test)
}

func inWorldOf(t *testing.T, of layout.Layout, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		engine := localdynamo.New()
		defer func() { _ = engine.Close() }()
		w := &world{T: t, Client: engine.Client(), proto: lab.Must(records.Of(of))(t), now: machine.BootedAt(time.Now())}
		lab.OK(t, table.Create(t.Context(), w.Client, table.Spec{Name: "locks", Layout: of}))
		test(t, w)
		for _, c := range w.clients {
			c.left()
		}
	})
}

// eachInWorld runs a test once for each case, each time in a new world.
func eachInWorld[C any](t *testing.T, cases map[string]C, test func(t *testing.T, w *world, c C)) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) { test(t, w, c) })
		})
	}
}

// client is a client that acquires keys and records its grants. It renews none
// of them.
type client struct {
	*acquire.Acquirer
	env     *core.Env
	w       *world
	wire    *wire
	session func() acquire.Session // begins a shared lease; nil for a client whose locks have leases of their own

	mu       sync.Mutex
	grants   []acquire.Grant
	given    []protocol.Key // keys that the client gave back after it was granted them
	waiting  []string       // holders that callers of the client have waited for
	failing  []error
	throttle int
	slow     time.Duration           // duration of each GiveBack
	leases   map[string]*lease.Lease // lease of the last grant of each key, by key
}

var (
	errReset     = errors.New("connection reset")
	errThrottled = &types.ProvisionedThroughputExceededException{}
	errDenied    = &smithy.GenericAPIError{Code: "AccessDeniedException", Fault: smithy.FaultClient}
)

// fate decides what happens to the client's nth request; the first has n = 1. The request
// reaches the table if fate calls deliver. If fate returns an error, the client receives
// that error instead of the reply.
type fate = func(n int, name string, deliver func()) error

// before returns a fate that delivers all requests. It calls do before it delivers the
// nth request with the given name.
func before(nth int, named string, do func()) fate {
	seen := 0
	return func(_ int, name string, deliver func()) error {
		if name == named {
			if seen++; seen == nth {
				do()
			}
		}
		deliver()
		return nil
	}
}

// failing returns a fate that drops each request for which fits returns true.
// The sender of such a request receives err.
func failing(err error, fits func(n int, name string) bool) fate {
	return func(n int, name string, deliver func()) error {
		if fits(n, name) {
			return err
		}
		deliver()
		return nil
	}
}

// wire records the requests of one client by name. A test can decide the fate
// of each request.
type wire struct {
	*dynamodb.Client
	mu   sync.Mutex
	sent []string
	fate fate // called for each request; if nil, every request is delivered

	blind bool // if set, the reply to a cancelled transaction contains no items
}

func (n *wire) do(name string, deliver func()) error {
	n.mu.Lock()
	n.sent = append(n.sent, name)
	count, fate := len(n.sent), n.fate
	n.mu.Unlock()
	if fate != nil {
		return fate(count, name, deliver)
	}
	deliver()
	return nil
}

func (n *wire) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (out *dynamodb.GetItemOutput, err error) {
	lost := n.do("get", func() { out, err = n.Client.GetItem(ctx, in, o...) })
	return out, errors.Join(lost, err)
}

func (n *wire) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, o ...func(*dynamodb.Options)) (out *dynamodb.BatchGetItemOutput, err error) {
	lost := n.do("batch", func() { out, err = n.Client.BatchGetItem(ctx, in, o...) })
	return out, errors.Join(lost, err)
}

func (n *wire) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (out *dynamodb.UpdateItemOutput, err error) {
	lost := n.do("update", func() { out, err = n.Client.UpdateItem(context.WithoutCancel(ctx), in, o...) })
	return out, errors.Join(lost, err)
}

func (n *wire) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (out *dynamodb.TransactWriteItemsOutput, err error) {
	lost := n.do("transact", func() {
		// Without its token the request is like one that arrives so late that DynamoDB has
		// forgotten the token.
		in.ClientRequestToken = nil
		out, err = n.Client.TransactWriteItems(ctx, in, o...)
	})
	if cancelled := (*types.TransactionCanceledException)(nil); n.blind && errors.As(err, &cancelled) {
		for i := range cancelled.CancellationReasons {
			cancelled.CancellationReasons[i].Item = nil
		}
	}
	return out, errors.Join(lost, err)
}

func (n *wire) requests() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.sent)
}

func (w *world) client(owner string) *client {
	n := &wire{Client: w.Client}
	c := &client{w: w, wire: n, leases: map[string]*lease.Lease{}, env: &core.Env{
		Machine: machine.Machine{Now: w.now, Wall: time.Now, Chance: func() float64 { return 0.5 }, Memory: 100},
		Running: core.NewRunning(), Proto: w.proto, Owner: protocol.NewOwner(owner), Lease: timing.Lease,
		Requests: &attempts.Sender{DB: n, Table: "locks", Keys: w.proto, Chance: func() float64 { return 0.5 }, Log: slog.New(slog.DiscardHandler)},
		PollMin:  10 * time.Millisecond, PollMax: time.Second, ReleaseGrace: time.Hour, Errors: told{},
	}}
	c.env.Native, _ = w.proto.(protocol.Native)
	c.env.Listener = c
	c.Acquirer = acquire.New(acquire.NewKeys(c.env), liveness.New(c.env), keeper{c})
	w.clients = append(w.clients, c)
	return c
}

// keeper implements acquire.Keeper for a client that keeps no list of the locks that it
// holds.
type keeper struct{ c *client }

func (keeper) Holds(protocol.Key, string) bool { return false }

func (keeper) GiveBack(held []acquire.Holding) {
	for _, h := range held {
		h.GiveBack()
	}
}

func (k keeper) Shares() bool         { return k.c.session != nil }
func (keeper) CheckSoon(protocol.Key) {}

func (k keeper) Session(context.Context) (acquire.Session, error) {
	if k.c.session == nil {
		return nil, nil
	}
	return k.c.session(), nil
}

// name returns the name part of an owner: an owner is a name, a slash and a
// client id.
func name(owner string) string {
	name, _, _ := strings.Cut(owner, "/")
	return name
}

// told creates the errors that the callers of the client receive.
type told struct{ core.Errors }

type heldError struct {
	key    protocol.Key
	holder string
	error
}

func (told) Held(key protocol.Key, holder protocol.Record, why error) error {
	return &heldError{key, name(holder.Owner), why}
}
func (e *heldError) Error() string { return fmt.Sprintf("held by %s: %v", e.holder, e.error) }
func (e *heldError) Unwrap() error { return e.error }

type failedError struct{ error }

func (e *failedError) Unwrap() error { return e.error }

func (told) Failed(_ string, _ protocol.Key, err error) error { return &failedError{err} }
func (told) Ended(_ protocol.Key, why error) error            { return why }
func (told) Done(key protocol.Key, _ protocol.Done) error {
	return fmt.Errorf("done: %s", key.Partition)
}
func (told) Unreadable(key protocol.Key, _ protocol.Item, err error) error {
	return fmt.Errorf("damaged %s: %w", key.Partition, err)
}
func (told) Missing(key protocol.Key) error { return fmt.Errorf("%w: %s", errMissing, key.Partition) }

var errMissing = errors.New("no record")

func (c *client) Report(_ context.Context, e core.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch e.Kind {
	case core.Waiting:
		c.waiting = append(c.waiting, name(e.Holder.Owner))
	case core.Throttled:
		c.throttle += e.Requests
	case core.WaitError:
		c.failing = append(c.failing, e.Err)
	}
}

// hasGrants reports whether the client has been granted any key.
func (c *client) hasGrants() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.grants) > 0
}

// holding is a grant of a client. The client does not renew it; only a test may.
type holding struct {
	lease.Holder
	c     *client
	want  *acquire.Want
	grant acquire.Grant
	lease *lease.Lease

	version string // version that the last renewal by the test wrote
}

func (h *holding) Lost(lease.Loss)         { h.lease.End(errors.New("lost")) }
func (h *holding) Lease() *lease.Lease     { return h.lease }
func (h *holding) IsOver() bool            { return h.lease.IsOver() }
func (h *holding) Record() protocol.Record { return h.lease.Record() }
func (h *holding) Age() time.Duration      { return h.c.w.now().Mono - h.grant.Sent.Mono }
func (h *holding) GiveBack() {
	time.Sleep(h.c.slow)
	h.c.mu.Lock()
	h.c.given = append(h.c.given, h.want.Key)
	h.c.mu.Unlock()
	h.release()
}

// hold returns the grant in the form in which the writes of the protocol take
// it.
func (h *holding) hold() protocol.Hold {
	return protocol.Hold{Key: h.want.Key, Owner: h.grant.Owner, Grants: []string{h.grant.Version}, Versions: []string{h.version}}
}

func (h *holding) renew() {
	next := protocol.NewVersion()
	h.c.w.write(h.c.w.proto.Renew(h.hold(), protocol.Renewal{Version: next, Lease: timing.Lease, Now: time.Now()}))
	h.version = next
}

func (h *holding) release() {
	h.lease.End(errors.New("released"))
	h.c.w.write(h.c.w.proto.Release(h.hold(), protocol.Release{Version: protocol.NewVersion(), Now: time.Now()}))
	h.c.Local.Pass(h.want.Key, h)
}

// want returns the Want of a call of c for the key, with the usual timing. Each
// edit then changes it.
func (c *client) want(key string, edit ...func(*acquire.Want)) *acquire.Want {
	want := &acquire.Want{Key: protocol.Key{Partition: key}, Timing: timing}
	leases := &lease.Leases{Env: c.env}
	want.Hold = func(_ context.Context, g acquire.Grant) acquire.Holding {
		h := &holding{c: c, want: want, grant: g, version: g.Version}
		h.lease = leases.New(lease.Terms{Timing: timing, Manual: true, Key: want.Key}, g.Attempt, g.Record, h)
		h.lease.Start()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.grants = append(c.grants, g)
		c.leases[key] = h.lease
		return h
	}
	for _, e := range edit {
		e(want)
	}
	return want
}

func noWait(w *acquire.Want)   { w.NoWait = true }
func ifExists(w *acquire.Want) { w.IfExists = true }

// wants returns a Want for each of the keys, all for one call of c.
func (c *client) wants(keys ...string) []*acquire.Want {
	var wants []*acquire.Want
	for _, key := range keys {
		wants = append(wants, c.want(key, func(want *acquire.Want) { want.OneOfSeveral = true }))
	}
	return wants
}

// edited applies the edits to each of the wants, and returns the wants.
func edited(wants []*acquire.Want, edits ...func(*acquire.Want)) []*acquire.Want {
	for _, want := range wants {
		for _, edit := range edits {
			edit(want)
		}
	}
	return wants
}

// one acquires a key. The test fails if the key is not granted.
func (c *client) one(key string, edit ...func(*acquire.Want)) *holding {
	c.w.Helper()
	return lab.Must(c.One(c.w.Context(), c.want(key, edit...)))(c.w).Held[0].(*holding)
}

// keysOf returns the keys that a call was granted, in the order of its result.
func keysOf(found acquire.Result) string {
	var keys []string
	for _, h := range found.Held {
		keys = append(keys, h.(*holding).want.Key.Partition)
	}
	return strings.Join(keys, " ")
}

// left waits until all calls of c, and all goroutines that they started, have
// ended.
func (c *client) left() { c.env.WaitIdle(context.Background()) }

// heldForASecond makes another client hold a key for a second and then release
// it.
func (w *world) heldForASecond(key string) {
	time.AfterFunc(time.Second, w.client("other").one(key).release)
}

// damage stores, under key, an item that is not a valid record.
func (w *world) damage(key string) {
	w.Helper()
	_, err := w.PutItem(w.Context(), &dynamodb.PutItemInput{TableName: aws.String("locks"), Item: protocol.Item{
		"key": lab.Str(key), "owner": lab.Num("1"),
	}})
	lab.OK(w, err)
}

// write sends a write to the table directly, without a client.
func (w *world) write(write *protocol.Write) {
	w.Helper()
	if _, err := w.UpdateItem(context.WithoutCancel(w.Context()), write.UpdateItem("locks")); err != nil {
		w.Error(err)
	}
}

// item returns the item of a key, or nil if there is none.
func (w *world) item(key string) protocol.Item {
	w.Helper()
	return lab.Must(w.GetItem(w.Context(), &dynamodb.GetItemInput{
		TableName: aws.String("locks"), ConsistentRead: aws.Bool(true), Key: lab.Key(key),
	}))(w).Item
}

// owner returns the name of a key's holder, or "" if the key is free.
func (w *world) owner(key string) string {
	w.Helper()
	if len(w.item(key)) == 0 {
		return ""
	}
	r := w.record(key)
	if r.Released {
		return ""
	}
	return name(r.Owner)
}

// record returns the record of a key, which must exist.
func (w *world) record(key string) protocol.Record {
	w.Helper()
	return lab.Must(w.proto.Decode(w.item(key)))(w)
}
