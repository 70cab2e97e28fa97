package records_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/localdynamo"
)

const (
	owner   = "web-7/812/abcdefghijklmnopqrstuvwxyz"
	another = "web-8/913/zyxwvutsrqponmlkjihgfedcba"
	lease   = 20 * time.Second
	skew    = 2 * time.Second // default of MaxSkew
)

// The writes of these tests store these versions in the record.
const (
	g1 = "a0000000-0000-4000-8000-000000000001"
	g2 = "a0000000-0000-4000-8000-000000000002"
	g9 = "a0000000-0000-4000-8000-000000000009"
	v0 = "b0000000-0000-4000-8000-000000000000"
	v2 = "b0000000-0000-4000-8000-000000000002"
	v3 = "b0000000-0000-4000-8000-000000000003"
	v9 = "b0000000-0000-4000-8000-000000000009"
)

var granted = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func text(s string) types.AttributeValue    { return &types.AttributeValueMemberS{Value: s} }
func decimal(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }

// bench is a table for one layout, with one record. Tests send the layout's writes to this table.
type bench struct {
	*testing.T
	layout.Layout
	protocol.Protocol
	engine *localdynamo.Engine
	db     *dynamodb.Client
	key    protocol.Key // the record's key
}

// layouts lists all layouts. Fuzz corpora refer to a layout by its index in this list, so
// add new layouts at the end.
var layouts = []layout.Layout{
	layout.Native{}, layout.Native{SortKey: "shard", SortValue: "0"}, layout.AWSLabs{}, layout.Dynamolock{},
	layout.PythonDynamoDBLock{}, layout.DynamoDLM{}, layout.DynamoDLM{NoSlots: true}, layout.DyndbMutex{},
}

// onEachLayout runs a test once for each layout, on a table of that layout.
func onEachLayout(t *testing.T, test func(t *testing.T, b *bench)) {
	for _, l := range layouts {
		t.Run(l.Name(), func(t *testing.T) { test(t, newBench(t, l)) })
	}
}

// newBench creates an engine with one table of the layout.
func newBench(t *testing.T, l layout.Layout) *bench {
	t.Helper()
	engine := localdynamo.New()
	t.Cleanup(func() { _ = engine.Close() })
	b := &bench{T: t, Layout: l, Protocol: lab.Must(records.Of(l))(t), engine: engine, db: engine.Client(), key: protocol.Key{Partition: "job"}}
	b.createTable()
	return b
}

func (b *bench) createTable() {
	b.Helper()
	s := b.Schema()
	in := &dynamodb.CreateTableInput{
		TableName: aws.String("locks"), BillingMode: types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String(s.Partition), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String(s.Partition), AttributeType: types.ScalarAttributeTypeS}},
	}
	if s.Sort != "" {
		of := types.ScalarAttributeTypeS
		if s.SortNumber {
			of = types.ScalarAttributeTypeN
		}
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: aws.String(s.Sort), KeyType: types.KeyTypeRange})
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String(s.Sort), AttributeType: of})
	}
	lab.OK(b, lab.ErrorOf(b.db.CreateTable(b.Context(), in)))
}

func (b *bench) lockKey() protocol.Key { return b.Complete(b.key) }

// put stores the item as the only record of the table. If the item is nil, put deletes the record.
func (b *bench) put(item protocol.Item) {
	b.Helper()
	key := lab.Must(b.Key(b.lockKey()))(b)
	if item == nil {
		lab.OK(b, lab.ErrorOf(b.db.DeleteItem(b.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("locks"), Key: key})))
		return
	}
	item = maps.Clone(item)
	maps.Copy(item, key)
	lab.OK(b, lab.ErrorOf(b.db.PutItem(b.Context(), &dynamodb.PutItemInput{TableName: aws.String("locks"), Item: item})))
}

// lands sends a write. It returns true if the write was applied, and false if the condition of
// the write failed.
func (b *bench) lands(w *protocol.Write) bool {
	b.Helper()
	_, err := b.db.TransactWriteItems(context.Background(), &dynamodb.TransactWriteItemsInput{
		TransactItems: []types.TransactWriteItem{w.TransactItem("locks")},
	})
	var canceled *types.TransactionCanceledException
	switch {
	case err == nil:
		return true
	case errors.As(err, &canceled) && aws.ToString(canceled.CancellationReasons[0].Code) == "ConditionalCheckFailed":
		return false
	}
	b.Fatal(err)
	return false
}

// The method "must" sends a write, and fails the test unless the write is applied.
func (b *bench) must(w *protocol.Write) {
	b.Helper()
	if !b.lands(w) {
		b.Fatal("the write was rejected")
	}
}

// rejects fails the test if DynamoDB applies the write. The format says what is wrong then.
func (b *bench) rejects(w *protocol.Write, format string, args ...any) {
	b.Helper()
	if b.lands(w) {
		b.Errorf(format, args...)
	}
}

func (b *bench) item() protocol.Item {
	b.Helper()
	key := lab.Must(b.Key(b.lockKey()))(b)
	return lab.Must(b.db.GetItem(b.Context(), &dynamodb.GetItemInput{TableName: aws.String("locks"), Key: key, ConsistentRead: aws.Bool(true)}))(b).Item
}

func (b *bench) record() protocol.Record {
	b.Helper()
	return lab.Must(b.Decode(b.item()))(b)
}

func (b *bench) grant(version string) protocol.Grant {
	return protocol.Grant{Key: b.lockKey(), Owner: owner, Version: version, Lease: lease, Now: granted}
}

// hold grants the key with grant id g1, and renews the grant with version v2. It returns
// the hold and the stored item.
func (b *bench) hold() (protocol.Hold, protocol.Item) {
	b.Helper()
	b.put(nil)
	b.must(b.Grant(b.grant(g1)))
	h := protocol.Hold{Key: b.lockKey(), Owner: b.record().Owner, Grants: []string{g1}, Token: b.record().Token, Versions: []string{g1}}
	b.must(b.Renew(h, protocol.Renewal{Version: v2, Lease: lease, Now: granted}))
	h.Versions = []string{v0, v2}
	return h, b.item()
}

func (b *bench) isByClock() bool { return b.Skew() > 0 }

var (
	monday = protocol.Once{Label: "mon"}
	epoch  = protocol.Once{Period: time.UnixMilli(0).UTC()}
	first  = protocol.Once{Period: time.UnixMilli(1000).UTC()}
	second = protocol.Once{Period: time.UnixMilli(2000).UTC()}
)

// mark returns a done mark: the holder of h has done the work "of".
func (b *bench) mark(h protocol.Hold, of protocol.Once) *protocol.Done {
	return &protocol.Done{Once: of.Label, Period: of.Period, Owner: h.Owner, At: granted, Token: h.Token}
}

func TestDoneMarkIsReadBackUnchanged(t *testing.T) {
	for _, once := range []protocol.Once{monday, first, epoch} {
		b := newBench(t, layout.Native{})
		h, _ := b.hold()
		want := b.mark(h, once)
		b.must(b.Release(h, protocol.Release{Version: v3, Done: want}))
		if got := b.record().Done; got == nil || !got.At.Equal(want.At) || got.Once != once.Label || got.Period != once.Period || got.Owner != want.Owner || got.Token != want.Token {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

func TestGrantIsRejectedIfWorkIsMarkedDone(t *testing.T) {
	for _, tc := range []struct {
		marked, wanted protocol.Once
		lands          bool
	}{
		{monday, protocol.Once{}, true},
		{monday, monday, false},
		{monday, protocol.Once{Label: "tue"}, true},
		{monday, first, true},
		{first, monday, true},
		{first, first, false},
		{first, second, true},
		{second, first, false},
		{epoch, epoch, false},
		{protocol.Once{}, monday, true},
		{protocol.Once{}, first, true},
	} {
		b := newBench(t, layout.Native{})
		h, _ := b.hold()
		r := protocol.Release{Version: v3}
		if !tc.marked.None() {
			r.Done = b.mark(h, tc.marked)
		}
		b.must(b.Release(h, r))
		g := b.grant(v9)
		g.Once = tc.wanted
		if is := tc.wanted.IsDone(b.record().Done); is == tc.lands {
			t.Errorf("%+v wanted, %+v marked: done %v", tc.wanted, tc.marked, is)
		}
		lab.Want(t, fmt.Sprintf("%+v wanted, %+v marked: granted", tc.wanted, tc.marked), b.lands(b.Grant(g)), tc.lands)
	}
}

func TestGrantIsRejectedExactlyIfDamagedDoneMarkDecodesAsDone(t *testing.T) {
	for name, mark := range map[string]types.AttributeValue{
		"not a map":            text("mon"),
		"empty":                &types.AttributeValueMemberM{},
		"of other types":       &types.AttributeValueMemberM{Value: protocol.Item{"once": decimal("1"), "period": text("1")}},
		"a fraction":           &types.AttributeValueMemberM{Value: protocol.Item{"period": decimal("1999.5")}},
		"just below the epoch": &types.AttributeValueMemberM{Value: protocol.Item{"period": decimal("-0.5")}},
		"out of range":         &types.AttributeValueMemberM{Value: protocol.Item{"period": decimal("1e30")}},
		"out of range, below":  &types.AttributeValueMemberM{Value: protocol.Item{"period": decimal("-1e30")}},
		"both":                 &types.AttributeValueMemberM{Value: protocol.Item{"once": text("mon"), "period": decimal("1000")}},
		"damaged owner":        &types.AttributeValueMemberM{Value: protocol.Item{"once": text("mon"), "by": decimal("1"), "at": text("x"), "fencingToken": decimal("-1")}},
	} {
		for _, wanted := range []protocol.Once{monday, epoch, first, second} {
			b := newBench(t, layout.Native{})
			h, _ := b.hold()
			b.must(b.Release(h, protocol.Release{Version: v3}))
			item := b.item()
			item["lastDone"] = mark
			b.put(item)
			g := b.grant(v9)
			g.Once = wanted
			done := wanted.IsDone(b.record().Done)
			if lands := b.lands(b.Grant(g)); lands == done {
				t.Errorf("%s, %+v wanted: granted %v, reads as done %v", name, wanted, lands, done)
			}
		}
	}
}

func TestUnmarkRemovesDoneMarkOnlyIfLabelAndTokenMatch(t *testing.T) {
	b := newBench(t, layout.Native{})
	p := b.Protocol.(protocol.Native)
	h, _ := b.hold()
	mark := b.mark(h, monday)
	b.must(b.Release(h, protocol.Release{Version: v3, Done: mark}))
	for name, other := range map[string]protocol.Done{
		"label": {Once: "tue", Token: mark.Token},
		"token": {Once: "mon", Token: mark.Token + 1},
		"kind":  {Period: first.Period, Token: mark.Token},
	} {
		b.rejects(p.Unmark(b.lockKey(), other), "the mark with another %s was removed", name)
	}
	before := b.record()
	b.must(p.Unmark(b.lockKey(), *mark))
	before.Done = nil
	if after := b.record(); !reflect.DeepEqual(after, before) {
		t.Errorf("%+v\nbefore %+v", after, before)
	}
}

func TestStepDownRequestAppliesToOneGrantOnly(t *testing.T) {
	b := newBench(t, layout.Native{})
	h, held := b.hold()
	ask := func() *protocol.Write { return b.Protocol.(protocol.Native).Ask(h, another, granted) }
	b.landsIn("ask", held, ask, same, version, kind, expired)

	b.put(held)
	before := b.record()
	b.must(ask())
	b.must(ask())
	after := b.record()
	if after.Asked != before.Grant || after.Version != before.Version || after.Lease != before.Lease || after.Attributes != nil {
		t.Errorf("the request changed %+v to %+v", before, after)
	}
	if !b.lands(b.Renew(h, protocol.Renewal{Version: v3, Lease: lease, Now: granted})) {
		t.Error("a renewal after the request fails")
	}
	h.Versions = []string{v3}
	b.must(b.HandOver(h, b.grant(g2)))
	if r := b.record(); r.Grant != g2 || r.Asked == g2 {
		t.Errorf("the next grant counts as asked: %+v", r)
	}
}

func TestUnreadableStepDownRequestCountsAsAbsent(t *testing.T) {
	b := newBench(t, layout.Native{})
	_, held := b.hold()
	for name, v := range map[string]types.AttributeValue{
		"not a map":      text("me"),
		"without grant":  &types.AttributeValueMemberM{Value: protocol.Item{"by": text("me")}},
		"grant a number": &types.AttributeValueMemberM{Value: protocol.Item{"grantId": decimal("1")}},
		"empty grant":    &types.AttributeValueMemberM{Value: protocol.Item{"grantId": text("")}},
	} {
		held["stepDown"] = v
		b.put(held)
		if r := b.record(); r.Asked != "" || r.Grant == "" || r.Attributes != nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
