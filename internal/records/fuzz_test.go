package records_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/localdynamo"
)

// fuzzTables contains a table of each layout. Each table is created when it is first needed.
type fuzzTables struct {
	of map[int]*bench
}

// table returns a table of the layout with index n, without items.
func (f *fuzzTables) table(t *testing.T, n int) *bench {
	n %= len(layouts)
	b := f.of[n]
	if b == nil {
		l := layouts[n]
		b = &bench{T: t, Layout: l, Protocol: lab.Must(records.Of(l))(t), db: localdynamo.New().Client()}
		b.createTable()
		if f.of == nil {
			f.of = map[int]*bench{}
		}
		f.of[n] = b
	}
	now := *b
	now.T = t
	return &now
}

// stores tries to store the item, and reports whether DynamoDB accepted it. In any case, it
// sets b.key to the item's key.
func (b *bench) stores(item protocol.Item) bool {
	b.key = b.Schema().KeyOf(item)
	key, err := b.Key(b.key)
	if err != nil {
		return false
	}
	for name, v := range key {
		if spelt(item[name]) != spelt(v) {
			return false
		}
	}
	_, err = b.db.PutItem(b.Context(), &dynamodb.PutItemInput{TableName: aws.String("locks"), Item: item})
	return err == nil
}

// parseItem decodes an item from DynamoDB JSON. It returns nil if b is not the JSON of an item.
func parseItem(b []byte) protocol.Item {
	var in map[string]map[string]any
	if json.Unmarshal(b, &in) != nil {
		return nil
	}
	item := protocol.Item{}
	for name, v := range in {
		if item[name] = parseValue(v); item[name] == nil {
			return nil
		}
	}
	return item
}

func parseValue(v map[string]any) types.AttributeValue {
	if len(v) != 1 {
		return nil
	}
	for kind, value := range v {
		switch value := value.(type) {
		case string:
			return valueOf(kind, value)
		case bool:
			if kind == "BOOL" {
				return &types.AttributeValueMemberBOOL{Value: value}
			}
			return &types.AttributeValueMemberNULL{Value: true}
		case map[string]any:
			m := protocol.Item{}
			for name, inner := range value {
				typed, _ := inner.(map[string]any)
				if m[name] = parseValue(typed); m[name] == nil {
					return nil
				}
			}
			return &types.AttributeValueMemberM{Value: m}
		case []any:
			return &types.AttributeValueMemberL{}
		}
	}
	return nil
}

// valueOf returns an attribute value of the given type, or nil if value is not valid for that type.
func valueOf(kind, value string) types.AttributeValue {
	switch kind {
	case "S":
		return text(value)
	case "N":
		return decimal(value)
	case "B":
		b, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			b = []byte(value)
		}
		return &types.AttributeValueMemberB{Value: b}
	case "BOOL":
		return &types.AttributeValueMemberBOOL{Value: value == "true"}
	case "NULL":
		return &types.AttributeValueMemberNULL{Value: true}
	case "M":
		return &types.AttributeValueMemberM{Value: protocol.Item{value: text(value)}}
	case "SS":
		return &types.AttributeValueMemberSS{Value: []string{value}}
	}
	return nil
}

// editedKinds lists the types that the function "edited" can give to an attribute. That function
// takes its parameter "kind" modulo len(editedKinds)+1. The result is an index in this list, or
// len(editedKinds): then the function removes the attribute.
var editedKinds = []string{"S", "N", "B", "BOOL", "NULL", "M", "SS"}

// edited returns a copy of the item in which one attribute has another value or is missing. A
// name with slashes is a path through maps, as in lastBreak/fencingToken.
func edited(item protocol.Item, name string, kind uint8, value string) protocol.Item {
	item = maps.Clone(item)
	if name == "" {
		return item
	}
	if m, rest, ok := strings.Cut(name, "/"); ok {
		if inner, ok := item[m].(*types.AttributeValueMemberM); ok {
			item[m] = &types.AttributeValueMemberM{Value: edited(inner.Value, rest, kind, value)}
			return item
		}
	}
	if n := int(kind) % (len(editedKinds) + 1); n < len(editedKinds) {
		item[name] = valueOf(editedKinds[n], value)
	} else {
		delete(item, name)
	}
	return item
}

// cloneItem returns a deep copy of the item.
func cloneItem(item protocol.Item) protocol.Item {
	c := protocol.Item{}
	for name, v := range item {
		switch v := v.(type) {
		case *types.AttributeValueMemberM:
			c[name] = &types.AttributeValueMemberM{Value: cloneItem(v.Value)}
		case *types.AttributeValueMemberB:
			c[name] = &types.AttributeValueMemberB{Value: slices.Clone(v.Value)}
		default:
			c[name] = v
		}
	}
	return c
}

// names fails the test unless err is a DecodeError that names an attribute and a problem.
func names(t *testing.T, err error) {
	t.Helper()
	var bad *protocol.DecodeError
	if !errors.As(err, &bad) || bad.Attribute == "" || bad.Problem == "" {
		t.Errorf("the error names no attribute, or no problem: %#v", err)
	}
}

// goldenItems returns the golden records of other libraries, grouped by the index of the
// layout that reads them.
func goldenItems(f *testing.F) map[int][]string {
	f.Helper()
	items := map[int][]string{}
	for _, g := range goldenFiles(f) {
		for n, l := range layouts {
			for _, item := range g.Items {
				if l.Name() == g.folder || l.Name() == "native" && (g.folder == "awslabs" || g.folder == "dynamolock") {
					items[n] = append(items[n], string(item))
				}
			}
		}
	}
	return items
}

// ourItems lists records as leasehold writes them, by the index of their layout.
var ourItems = map[int][]string{
	0: {
		`{"key":{"S":"job"},"ownerName":{"S":"web-7/812/abcdefghijklmnopqrstuvwxyz"},"leaseDuration":{"S":"20000"},"recordVersionNumber":{"S":"b0000000-0000-4000-8000-000000000001"},"grantId":{"S":"a0000000-0000-4000-8000-000000000001"},"fencingToken":{"N":"42"},"grantedAt":{"N":"1764230400000"},"data":{"B":"c3RhdGU="},"reason":{"S":"month end"}}`,
		`{"key":{"S":"job"},"ownerName":{"S":"web-7/812/abcdefghijklmnopqrstuvwxyz"},"leaseDuration":{"S":"20000"},"recordVersionNumber":{"S":"b0000000-0000-4000-8000-000000000001"},"grantId":{"S":"a0000000-0000-4000-8000-000000000001"},"fencingToken":{"N":"42"},"grantedAt":{"N":"1764230400000"},"isReleased":{"S":"1"},"expiresAt":{"N":"1764835200"},"lastBreak":{"M":{"by":{"S":"ops"},"at":{"N":"1764230400000"},"fencingToken":{"N":"41"}}}}`,
		`{"key":{"S":"job"},"ownerName":{"S":"web-7/812/abcdefghijklmnopqrstuvwxyz"},"leaseDuration":{"S":"20000"},"recordVersionNumber":{"S":"b0000000-0000-4000-8000-000000000001"},"grantId":{"S":"a0000000-0000-4000-8000-000000000001"},"fencingToken":{"N":"42"},"grantedAt":{"N":"1764230400000"},"session":{"S":"abcdefghijklmnopqrstuvwxyz"}}`,
	},
	1: {`{"key":{"S":"job"},"shard":{"S":"0"},"ownerName":{"S":"web-7/812/abcdefghijklmnopqrstuvwxyz"},"leaseDuration":{"S":"20000"},"recordVersionNumber":{"S":"b0000000-0000-4000-8000-000000000001"},"grantId":{"S":"a0000000-0000-4000-8000-000000000001"},"fencingToken":{"N":"42"}}`},
	4: {`{"lock_key":{"S":"job"},"sort_key":{"S":"-"},"owner_name":{"S":"web-7/812/abcdefghijklmnopqrstuvwxyz"},"lease_duration":{"N":"20"},"record_version_number":{"S":"b0000000-0000-4000-8000-000000000001"},"expiry_time":{"N":"1764835200"},"grantId":{"S":"a0000000-0000-4000-8000-000000000001"},"fencingToken":{"N":"42"}}`},
	5: {`{"resource_id":{"S":"job"},"concurrency_id":{"N":"0"},"release_code":{"S":"b0000000000040008000000000000001"},"expires":{"N":"1764230420"},"grantId":{"S":"a0000000-0000-4000-8000-000000000001"},"fencingToken":{"N":"42"}}`},
	6: {`{"resource_id":{"S":"job"},"release_code":{"S":"b0000000000040008000000000000001"},"expires":{"N":"1764230420"}}`},
	7: {`{"lockname":{"S":"job"},"holder":{"S":"web-7/812/abcdefghijklmnopqrstuvwxyz/b0000000-0000-4000-8000-000000000001"},"expire_ts":{"N":"1764230420000"},"ttl":{"N":"1764403220"},"grantId":{"S":"a0000000-0000-4000-8000-000000000001"},"fencingToken":{"N":"42"}}`},
}

// maxToken is the highest token that a record may have.
const maxToken = 1<<53 - 2

// marked reports whether an item has the mark by which the layout of b marks a free key.
func (b *bench) marked(item protocol.Item) bool {
	switch b.Layout.(type) {
	case layout.DyndbMutex:
		return spelt(item["holder"]) == "S __empty__"
	case layout.DynamoDLM, layout.PythonDynamoDBLock:
		return false // in these two layouts, a free key has no record
	}
	return spelt(item["isReleased"]) == "S 1"
}

// FuzzRecordDecodedAsHeldOrDamagedIsNeverGranted checks the decoder of every layout. For a damaged
// record, the decoder must return an error with a reason, and never a free record. If the decoder
// finds that an item is held or damaged, DynamoDB must reject a grant of its key.
func FuzzRecordDecodedAsHeldOrDamagedIsNeverGranted(f *testing.F) {
	for _, items := range []map[int][]string{goldenItems(f), ourItems} {
		for n, list := range items {
			for _, item := range list {
				f.Add(uint8(n), item, "", uint8(0), "")
			}
		}
	}
	for _, edit := range []struct {
		name  string
		kind  uint8
		value string
	}{
		{"isReleased", 0, "1"}, {"isReleased", 1, "1"}, {"isReleased", 3, "true"}, {"leaseDuration", 0, "-1s"}, {"leaseDuration", 0, "9223372036854775807"},
		{"fencingToken", 1, "9007199254740991"}, {"fencingToken", 1, "1.5"}, {"fencingToken", 0, "42"}, {"recordVersionNumber", 7, ""},
		{"kind", 0, "rw"}, {"kind", 1, "1"}, {"grantId", 7, ""}, {"key", 0, ""}, {"ownerName", 4, ""}, {"expiresAt", 1, "1e40"}, {"grantedAt", 1, "1e99"},
	} {
		f.Add(uint8(0), ourItems[0][0], edit.name, edit.kind, edit.value)
		f.Add(uint8(0), ourItems[0][1], edit.name, edit.kind, edit.value)
	}
	var tables fuzzTables
	f.Fuzz(func(t *testing.T, n uint8, source, name string, kind uint8, value string) {
		item := parseItem([]byte(source))
		if item == nil {
			return
		}
		item = edited(item, name, kind, value)
		b := tables.table(t, int(n))
		before := cloneItem(item)
		r, err := b.Decode(item)
		if !reflect.DeepEqual(item, before) {
			t.Error("decoding has changed the item")
		}
		if err != nil {
			names(t, err)
			if !reflect.DeepEqual(r, protocol.Record{Key: r.Key}) {
				t.Errorf("a damaged record decodes to more than its key: %+v", r)
			}
		} else {
			b.isSound(r, item)
		}
		if b.stores(item) {
			b.agrees(r, err)
			b.put(nil)
		}
	})
}

// isSound checks a record against the item from which it was decoded.
func (b *bench) isSound(r protocol.Record, item protocol.Item) {
	b.Helper()
	switch {
	case r.Key != b.Schema().KeyOf(item) && !b.Schema().SortNumber || r.Key.Partition == "":
		b.Errorf("key %+v", r.Key)
	case r.Released != b.marked(item):
		b.Errorf("released %v, release mark %v", r.Released, b.marked(item))
	case item["kind"] != nil:
		b.Errorf("a row of kind %s is a lock", spelt(item["kind"]))
	case r.Lease < 0 || !r.Released && !b.isByClock() && r.Lease == 0:
		b.Errorf("lease %v", r.Lease)
	case r.Token < 0 || r.Token > maxToken:
		b.Errorf("token %d", r.Token)
	case !r.Released && r.Version == "":
		b.Error("a holder without a version")
	case !r.Released && b.isByClock() && (r.ExpiresAt.Before(time.Unix(0, 0)) || r.ExpiresAt.Year() > 9999 || r.ExpiresAt.IsZero()):
		b.Errorf("expires %v", r.ExpiresAt)
	case !r.Released && r.Grant != "" && item["fencingToken"] == nil:
		b.Error("a grant by leasehold without a token")
	}
	for name := range r.Attributes {
		if b.Reserved(name) {
			b.Errorf("%s counts as an attribute of the caller", name)
		}
	}
}

// agrees checks that DynamoDB accepts a grant if the decoder finds the stored item free,
// and rejects it otherwise.
func (b *bench) agrees(r protocol.Record, err error) {
	b.Helper()
	stored := b.item()
	for _, mustExist := range []bool{false, true} {
		g := b.grant(g9)
		g.IfExists = mustExist
		lands := b.lands(b.Grant(g))
		switch free := err == nil && r.Released; {
		case lands && !free && isFraction(stored["fencingToken"]):
			// The decoder finds the item damaged, because its token is a fraction. But DynamoDB may
			// apply the grant, because no condition can detect a fraction. This is safe: the client
			// cannot decode the new token either, and does not trust the grant.
		case lands && !free:
			b.Errorf("granted, although Decode returned released %v, error %v", r.Released, err)
		// The rejection is correct if the item already has the grant id g9. To DynamoDB, this write
		// may be a late copy of the grant that wrote the item.
		case !lands && free && spelt(stored["grantId"]) != "S "+g9:
			b.Error("the grant of a free record was rejected")
		case lands:
			if now := b.record(); now.Released || now.Grant != g9 || b.Owned() && now.Owner != owner {
				b.Errorf("granted, but decoded as %+v", now)
			}
		}
		if lands {
			b.put(stored)
		}
	}
	if err == nil && !r.Released && !b.lands(b.Break(r, protocol.Break{Version: v9, Expires: granted, By: "ops", At: granted})) {
		b.Errorf("the record that was read cannot be broken: %+v", r)
	}
}

func isFraction(v types.AttributeValue) bool {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return false
	}
	f, is := new(big.Rat).SetString(n.Value)
	return is && !f.IsInt()
}

// FuzzEachLayoutDecodesRecordsThatItWrote checks that each layout decodes its own writes: a grant,
// its renewal and its release. It also checks the condition of a fenced write (Guard), which must
// be true after the renewal and false after the release.
func FuzzEachLayoutDecodesRecordsThatItWrote(f *testing.F) {
	for n := range layouts {
		f.Add(uint8(n), "deploy/prod", "web-7/812", []byte("state"), int64(lease), granted.UnixMilli())
		f.Add(uint8(n), "é/\x00", "", []byte{}, int64(1), int64(0))
		f.Add(uint8(n), "k", "a/b/c", []byte(nil), int64(1<<63-1), granted.UnixMilli()+1)
	}
	var tables fuzzTables
	f.Fuzz(func(t *testing.T, n uint8, key, host string, data []byte, lease, now int64) {
		b := tables.table(t, int(n))
		b.key.Partition = key
		at := time.UnixMilli(now)
		if _, err := b.Key(b.lockKey()); err != nil || lease <= 0 || !utf8.ValidString(host) || len(data)+len(host) > 1<<16 || at.Before(time.Unix(0, 0)) || at.Year() > 9999 {
			return // skipped: the client refuses such a request, or no clock shows such a time
		}
		g := protocol.Grant{Key: b.lockKey(), Owner: host + "/abcdefghijklmnopqrstuvwxyz", Version: g1, Lease: time.Duration(lease), Now: at}
		if b.Capabilities().Data && len(data) > 0 {
			g.Changes = protocol.Changes{SetData: true, Data: data}
		}
		defer b.put(nil)
		b.must(b.Grant(g))
		reads := func(version string) protocol.Record {
			t.Helper()
			r := b.record()
			end := at.Add(min(g.Lease, 100*365*24*time.Hour))
			switch {
			case r.Key != g.Key, r.Released, r.Grant != g1, r.Version != version, b.Owned() && r.Owner != g.Owner:
				t.Fatalf("%+v was decoded as %+v", g, r)
			case !b.isByClock() && r.Lease < g.Lease, b.isByClock() && r.ExpiresAt.Before(end) && r.ExpiresAt.Year() < 9999:
				t.Errorf("a lease of %v from %v was decoded as %v until %v", g.Lease, at, r.Lease, r.ExpiresAt)
			case string(r.Data) != string(g.Changes.Data):
				t.Errorf("data %q was decoded as %q", g.Changes.Data, r.Data)
			}
			return r
		}
		r := reads(g1)
		h := protocol.Hold{Key: g.Key, Owner: g.Owner, Grants: []string{g1}, Token: r.Token, Versions: []string{g1}}
		if !b.lands(b.Renew(h, protocol.Renewal{Version: v2, Lease: g.Lease, Now: at})) || b.lands(b.Renew(h, protocol.Renewal{Version: v3, Lease: g.Lease, Now: at})) {
			t.Fatal("not renewed, or renewed twice from one version")
		}
		if again := reads(v2); again.Token != r.Token {
			t.Errorf("token %d after the renewal, %d before", again.Token, r.Token)
		}
		h.Versions = []string{v2}
		if !b.lands(b.Guard(h)) {
			t.Error("the guard failed while the grant was current")
		}
		b.must(b.Release(h, protocol.Release{Version: v3, Expires: at.Add(time.Hour)}))
		b.rejects(b.Guard(h), "the guard succeeded after the release")
		b.rejects(b.Renew(h, protocol.Renewal{Version: v9, Lease: g.Lease, Now: at}), "renewed after the release")
		if item := b.item(); item != nil {
			if r, err := b.Decode(item); err != nil || !r.Released {
				t.Errorf("released, but decoded as %+v, %v", r, err)
			}
		}
	})
}

// rowItems lists rows of layout native that are not plain locks.
var rowItems = []string{
	`{"key":{"S":"job"},"kind":{"S":"rw"},"ownerName":{"S":"web/812"},"leaseDuration":{"S":"20000"},"recordVersionNumber":{"S":"v"},"grantId":{"S":"g"},"fencingToken":{"N":"42"},"grantedAt":{"N":"1764230400000"}}`,
	`{"key":{"S":"leasehold/session/abcdefghijklmnopqrstuvwxyz"},"kind":{"S":"session"},"ownerName":{"S":"web/812/abcdefghijklmnopqrstuvwxyz"},"leaseDuration":{"S":"20000"},"recordVersionNumber":{"S":"v"},"grantId":{"S":"g"},"fencingToken":{"N":"1"},"grantedAt":{"N":"1764230400000"}}`,
	`{"key":{"S":"leasehold/session/abcdefghijklmnopqrstuvwxyz"},"kind":{"S":"session"},"ownerName":{"S":"web/812/abcdefghijklmnopqrstuvwxyz"},"leaseDuration":{"S":"20000"},"recordVersionNumber":{"S":"v"},"grantId":{"S":"g"},"fencingToken":{"N":"1"},"dead":{"S":"1"}}`,
}

// FuzzRowWithAttributeNamedKindIsNeverDecodedAsLock checks that a row with a kind is never decoded
// as a lock. It also checks the decoder of session rows. Each error must give a reason, and a
// session is dead exactly if its row is marked as dead.
func FuzzRowWithAttributeNamedKindIsNeverDecodedAsLock(f *testing.F) {
	for _, item := range rowItems {
		f.Add(item, "", uint8(0), "")
		for _, edit := range []struct {
			name  string
			kind  uint8
			value string
		}{
			{"dead", 1, "1"}, {"dead", 0, "0"}, {"kind", 0, "session"}, {"kind", 7, ""}, {"fencingToken", 1, "9007199254740991"},
		} {
			f.Add(item, edit.name, edit.kind, edit.value)
		}
	}
	var tables fuzzTables
	f.Fuzz(func(t *testing.T, source, name string, kind uint8, value string) {
		item := parseItem([]byte(source))
		if item == nil {
			return
		}
		item = edited(item, name, kind, value)
		b := tables.table(t, 0)
		before := cloneItem(item)
		if _, err := b.Decode(item); err == nil && item["kind"] != nil {
			t.Errorf("a row of kind %s is a lock", spelt(item["kind"]))
		}
		b.sessionIsSound(item)
		if !reflect.DeepEqual(item, before) {
			t.Error("decoding has changed the item")
		}
	})
}

func (b *bench) sessionIsSound(item protocol.Item) {
	b.Helper()
	p := b.Protocol.(protocol.Native).Session()
	r, err := p.Decode(item)
	switch {
	case err != nil:
		names(b.T, err)
	case spelt(item["kind"]) != "S session", r.Lease < 0, !r.Released && (r.Lease == 0 || r.Owner == "" && spelt(item["ownerName"]) != "S " || r.Version == "" || r.Grant == ""):
		b.Errorf("a session was decoded as %+v", r)
	case r.Released != (spelt(item["dead"]) == "S 1"):
		b.Errorf("dead %v, but the mark is %s", r.Released, spelt(item["dead"]))
	}
}
