package layouttest

import (
	"context"
	"crypto/rand"
	"log/slog"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/machine"
	"github.com/leasehold-go/leasehold/table"
)

// Item is an item of a table, as the SDK represents it.
type Item = map[string]types.AttributeValue

// Connect is a function that returns an SDK client of an engine.
type Connect func(...func(*dynamodb.Options)) *dynamodb.Client

// Engine is a DynamoDB server on which this package tests layouts.
type Engine struct {
	// Run runs one check. The engine may contain tables of other checks.
	Run func(t *testing.T, check func(t *testing.T, connect Connect))

	// Virtual is true if Run runs the check in a bubble of testing/synctest, where the clocks of
	// clients follow the bubble's virtual time.
	Virtual bool
}

// env is the environment of a check: a lock table with the subject's layout, and a key that no
// other check uses.
type env struct {
	*testing.T
	Subject
	on      Engine
	connect Connect
	// Client that sends its requests without a wire, so that no fault applies to them.
	db    *dynamodb.Client
	table string
	key   string
	began time.Time
}

func newEnv(t *testing.T, on Engine, s Subject, connect Connect) *env {
	t.Helper()
	e := &env{T: t, Subject: s, on: on, connect: connect, db: connect(), key: "job-" + rand.Text()[:10], began: time.Now()}
	e.table = "locks-" + strings.ReplaceAll(s.Name, " ", "-")
	if err := table.Create(t.Context(), e.db, table.Spec{Name: e.table, Layout: s.Layout}); err != nil {
		t.Fatal(err)
	}
	return e
}

// client returns a new lock client and its wire. The lock client behaves like a separate process.
// It is closed at the end of the check.
func (e *env) client(edit ...func(*leasehold.Config)) (*leasehold.Client, *wire) {
	e.Helper()
	cfg := leasehold.Config{Table: e.table, Layout: e.Layout, Owner: "test", Logger: slog.New(slog.DiscardHandler)}
	for _, f := range edit {
		f(&cfg)
	}
	w := &wire{}
	db := machine.DB{
		Client: e.connect(func(o *dynamodb.Options) { w.next, o.HTTPClient = o.HTTPClient, w }),
		Edit:   func(*machine.Machine) {},
	}
	if e.on.Virtual {
		// After a record is deleted, the client computes the next token from its clock. This token
		// must be higher than the token in the deleted record. So each request takes a little
		// virtual time, and two grants never happen at the same time.
		w.latency = 100 * time.Microsecond
		db.Edit = func(m *machine.Machine) { m.Now = machine.BootedAt(e.began) }
	}
	c, err := leasehold.New(db, cfg)
	if err != nil {
		e.Fatal(err)
	}
	e.Cleanup(func() { _ = c.Close(context.Background()) }) // the error is ignored, because a check may leave locks held
	return c, w
}

// patience is how long a check waits for an expected result before it fails. It is also the lease
// of a peer that must stay alive during a check. It is long, because the machine may be busy.
const patience = 2 * time.Minute

// The method "within" returns a context that expires after d.
func (e *env) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(e.Context(), d)
	e.Cleanup(cancel)
	return ctx
}

func (e *env) acquire(c *leasehold.Client, opts ...leasehold.AcquireOption) *leasehold.Lock {
	e.Helper()
	lock, err := c.Acquire(e.within(patience), e.key, opts...)
	if err != nil {
		e.Fatal(err)
	}
	return lock
}

func (e *env) release(lock *leasehold.Lock, opts ...leasehold.ReleaseOption) {
	e.Helper()
	if err := lock.Release(e.within(patience), opts...); err != nil {
		e.Fatal(err)
	}
}

func (e *env) get(c *leasehold.Client) leasehold.Record {
	e.Helper()
	r, err := c.Get(e.within(patience), e.key)
	if err != nil {
		e.Fatal(err)
	}
	return r
}

// item returns the record of the check's key, or nil if the record does not exist.
func (e *env) item() Item {
	e.Helper()
	out, err := e.db.GetItem(e.Context(), &dynamodb.GetItemInput{
		TableName: aws.String(e.table), Key: e.keyItem(e.key), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		e.Fatal(err)
	}
	return out.Item
}

// put writes an item unconditionally, as a peer (a client of another lock library) or an
// operator might.
func (e *env) put(item Item) {
	e.Helper()
	if _, err := e.db.PutItem(e.Context(), &dynamodb.PutItemInput{TableName: aws.String(e.table), Item: item}); err != nil {
		e.Fatal(err)
	}
}

// unchanged checks that the record equals the given earlier item, except for the wait queue. The
// parameter "after" names the call that must not have changed the record. The name is part of the
// error message.
func (e *env) unchanged(before Item, after string) {
	e.Helper()
	noQueue := Item{"waiters": nil}
	if now, before := with(e.item(), noQueue), with(before, noQueue); !reflect.DeepEqual(now, before) {
		e.Errorf("after %s the record shows %v, before %v", after, describe(now), describe(before))
	}
}

// The function "with" returns a copy of item with the given changes. A nil value in changes removes
// the attribute.
func with(item Item, changes Item) Item {
	out := maps.Clone(item)
	for name, v := range changes {
		if v == nil {
			delete(out, name)
		} else {
			out[name] = v
		}
	}
	return out
}

// describe returns an item with plain Go values, for error messages.
func describe(item Item) map[string]any {
	out := map[string]any{}
	for name, v := range item {
		out[name] = describeValue(v)
	}
	return out
}

func describeValue(v types.AttributeValue) any {
	switch v := v.(type) {
	case nil:
		return "missing"
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return "N " + v.Value
	case *types.AttributeValueMemberB:
		return v.Value
	}
	return reflect.TypeOf(v).Elem().Name()
}

func text(s string) types.AttributeValue    { return &types.AttributeValueMemberS{Value: s} }
func decimal(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }
func binary(s string) types.AttributeValue {
	return &types.AttributeValueMemberB{Value: []byte(s)}
}

// remove deletes the record, as some other lock libraries do when they release a lock.
func (e *env) remove() {
	e.Helper()
	if _, err := e.db.DeleteItem(e.Context(), &dynamodb.DeleteItemInput{TableName: aws.String(e.table), Key: e.keyItem(e.key)}); err != nil {
		e.Fatal(err)
	}
}
