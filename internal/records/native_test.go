package records

import (
	"errors"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func mustProtocol(t testing.TB, l layout.Layout) protocol.Protocol {
	t.Helper()
	p, err := Of(l)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Grant id and record version in heldItem.
const (
	g1 = "a0000000-0000-4000-8000-000000000001"
	v1 = "b0000000-0000-4000-8000-000000000001"
)

// heldItem returns a record in the state in which a grant by leasehold leaves it.
func heldItem() protocol.Item {
	return protocol.Item{
		"key":         text("job"),
		attrOwner:     text("web-7/812/abcdefghijklmnopqrstuvwxyz"),
		attrLease:     text("20000"),
		attrVersion:   text(v1),
		attrGrant:     text(g1),
		attrToken:     number(42),
		attrGrantedAt: number(1764230400000),
	}
}

func with(changes protocol.Item) protocol.Item {
	item := heldItem()
	for name, v := range changes {
		if v == nil {
			delete(item, name)
		} else {
			item[name] = v
		}
	}
	return item
}

func TestRecordInLayoutNativeIsDecodedCompletely(t *testing.T) {
	p := mustProtocol(t, layout.Native{})
	r, err := p.Decode(with(protocol.Item{
		attrData: &types.AttributeValueMemberB{Value: []byte("state")},
		"reason": text("month end"),
	}))
	if err != nil {
		t.Fatal(err)
	}
	if r.Key.Partition != "job" || r.Token != 42 || r.Grant != g1 || r.Version != v1 || r.Lease != 20*time.Second ||
		string(r.Data) != "state" || len(r.Attributes) != 1 || r.Released || r.GrantedAt.UnixMilli() != 1764230400000 {
		t.Fatalf("decoded %+v", r)
	}
}

func TestDecodeErrorNamesDamagedAttribute(t *testing.T) {
	p := mustProtocol(t, layout.Native{})
	for _, tc := range []struct {
		attribute string
		value     types.AttributeValue
	}{
		{attrOwner, nil}, {attrOwner, number(1)},
		{attrVersion, nil}, {attrVersion, number(1)}, {attrVersion, text("")},
		{attrLease, nil}, {attrLease, number(20000)}, {attrLease, text("soon")}, {attrLease, text("0")}, {attrLease, text("-5")}, {attrLease, text("-1s")},
		{attrReleased, text("0")}, {attrReleased, number(1)}, {attrReleased, &types.AttributeValueMemberBOOL{Value: false}},
		{attrToken, text("42")}, {attrToken, number(-1)}, {attrToken, number(protocol.MaxToken + 1)}, {attrToken, &types.AttributeValueMemberN{Value: "1.5"}},
		{attrData, text("not binary")},
		{attrGrant, nil}, {attrGrant, number(1)},
		{attrGrantedAt, text("now")},
		{attrKind, text("rw")},
		{"key", number(1)},
		{attrExpiresAt, text("never")},
	} {
		_, err := p.Decode(with(protocol.Item{tc.attribute: tc.value}))
		var bad *protocol.DecodeError
		if !errors.As(err, &bad) || bad.Attribute != tc.attribute {
			t.Errorf("%s = %v: error %v", tc.attribute, tc.value, err)
		}
	}
}

func TestReleasedRecordIsDecodedIfKindAndTokenAreValid(t *testing.T) {
	p := mustProtocol(t, layout.Native{})
	damaged := with(protocol.Item{attrReleased: text("1"), attrLease: text("soon"), attrOwner: nil, attrGrant: number(1)})
	r, err := p.Decode(damaged)
	if err != nil || !r.Released {
		t.Fatalf("read %+v, %v", r, err)
	}
	for _, name := range []string{attrKind, attrToken} {
		if _, err := p.Decode(with(protocol.Item{attrReleased: text("1"), name: text("x")})); err == nil {
			t.Errorf("a released record with an invalid %s was accepted", name)
		}
	}
}

func TestTokenIsNotReadIfOwnerHasNoClientID(t *testing.T) {
	// dynamolock, and the Java client in update mode, keep unknown attributes of a record when
	// they acquire a lock. So leasehold's token may be in a record that one of these libraries
	// has written.
	p := mustProtocol(t, layout.Native{})
	r, err := p.Decode(with(protocol.Item{attrOwner: text("java-host"), attrLease: text("20s")}))
	if err != nil {
		t.Fatal(err)
	}
	if r.Token != 0 || r.Grant != "" || r.Lease != 20*time.Second {
		t.Fatalf("read %+v", r)
	}
}

func TestStoredLeaseIsReadAsMillisecondsOrGoDuration(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"20000": 20 * time.Second, "20s": 20 * time.Second, "1m30s": 90 * time.Second, "1": time.Millisecond,
		"9223372036854775807": math.MaxInt64, "99999999999999999999999999": math.MaxInt64,
	} {
		if got, err := parseLease(s); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", s, got, err, want)
		}
	}
}

func TestLeaseStoredInSecondsIsLimitedToRangeOfGoDuration(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"20": 20 * time.Second, "0.5": 500 * time.Millisecond, "1e-10": 1, "0": 0, "-1": 0, "-1e30": 0,
		"9223372036": 9223372036 * time.Second, "9223372036.854775807": math.MaxInt64, "1e30": math.MaxInt64,
	} {
		d := &decoder{item: protocol.Item{"lease": decimal(s)}}
		if got := d.seconds("lease"); d.err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", s, got, d.err, want)
		}
	}
}

func TestStoredLeaseDurationIsRoundedUpToMilliseconds(t *testing.T) {
	if got := leaseMillis(1500*time.Microsecond + 1).(*types.AttributeValueMemberS).Value; got != "2" {
		t.Errorf("stored as %s ms", got)
	}
	// One lease is a whole number of milliseconds. The other is the longest possible Duration.
	for _, d := range []time.Duration{time.Second, 1<<63 - 1} {
		got, err := parseLease(leaseMillis(d).(*types.AttributeValueMemberS).Value)
		if err != nil || got < d {
			t.Errorf("a lease of %v was decoded as %v, %v", d, got, err)
		}
	}
}

func TestLayoutWithClashingAttributeNamesIsRejected(t *testing.T) {
	for name, l := range map[string]layout.Native{
		"partition key is an attribute": {PartitionKey: "data"},
		"sort key is partition key":     {SortKey: "key"},
		"TTL is an attribute":           {TTL: "fencingToken"},
		"TTL is the key":                {TTL: "key"},
		"value without a sort key":      {SortValue: "0"},
	} {
		if _, err := Of(l); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestInvalidKeyIsRejected(t *testing.T) {
	p := mustProtocol(t, layout.Native{SortKey: "shard"})
	for _, k := range []protocol.Key{
		{}, {Partition: "a"}, {Sort: "b"}, {Partition: "a\xff", Sort: "b"}, {Partition: "a", Sort: "\xff"},
		{Partition: strings.Repeat("a", 2049), Sort: "b"}, {Partition: "a", Sort: strings.Repeat("b", 1025)},
	} {
		if _, err := p.Key(k); err == nil {
			t.Errorf("accepted %.9q/%.9q", k.Partition, k.Sort)
		}
	}
	if item, err := p.Key(protocol.Key{Partition: strings.Repeat("a", 2048), Sort: strings.Repeat("b", 1024)}); err != nil || len(item) != 2 {
		t.Errorf("refused the longest key: %v", err)
	}
}

func TestPartitionAndSortKeyAreNotConcatenated(t *testing.T) { // in the library of awslabs, the keys ("a","bc") and ("ab","c") are one lock
	p := mustProtocol(t, layout.Native{SortKey: "shard"})
	a, _ := p.Key(protocol.Key{Partition: "a", Sort: "bc"})
	b, _ := p.Key(protocol.Key{Partition: "ab", Sort: "c"})
	if a["key"].(*types.AttributeValueMemberS).Value == b["key"].(*types.AttributeValueMemberS).Value {
		t.Error(`("a","bc") and ("ab","c") are the same key`)
	}
}

// In dynamolock and the library of awslabs, a caller's own attribute isReleased frees the
// lock. Leasehold must not have that fault.
func TestAttributeNamesThatLeaseholdUsesAreReserved(t *testing.T) {
	p := mustProtocol(t, layout.Native{SortKey: "shard", TTL: "ttl"})
	for _, name := range append([]string{"key", "shard", "ttl", attrExpiresAt}, reserved...) {
		if !p.Reserved(name) {
			t.Errorf("%s is not reserved", name)
		}
	}
	if p.Reserved("reason") {
		t.Error("a caller's attribute is reserved")
	}
}

func TestMigrationPageListsAttributesOfLeasehold(t *testing.T) {
	page, err := os.ReadFile("../../docs/migrating/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), "**Attributes of your own.**")
	list, _, _ = strings.Cut(list, "\n\n")
	list = strings.Join(strings.Fields(list), " ")
	list, rest, _ := strings.Cut(list, "are leasehold's in every layout")
	for _, name := range ours {
		if !strings.Contains(list, "`"+name+"`") {
			t.Errorf("the page does not list %s", name)
		}
	}
	expires, rest, _ := strings.Cut(rest, "`WithAttributes`")
	for _, name := range reserved {
		if !strings.Contains(list+rest, "`"+name+"`") {
			t.Errorf("WithAttributes refuses %s, which the page does not list", name)
		}
	}
	for _, name := range layout.Names() {
		l, err := layout.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		if named := strings.Contains(expires, "`"+name+"`"); named != mustProtocol(t, l).Reserved(attrExpiresAt) {
			t.Errorf("%s: the page says that the layout uses %s: %v", name, attrExpiresAt, named)
		}
	}
}

func TestOnlyStructsOfPackageLayoutAreAcceptedAsLayouts(t *testing.T) {
	for _, name := range layout.Names() {
		if l, err := layout.Parse(name); err != nil || mustProtocol(t, l) == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, l := range []layout.Layout{nil, &layout.Native{}, struct{ layout.Native }{}} {
		if _, err := Of(l); err == nil || !strings.Contains(err.Error(), "use a struct of package layout") {
			t.Errorf("%T: %v", l, err)
		}
	}
}

func TestGrantKeepsExpiresAtAttributeIfItIsPartOfKey(t *testing.T) {
	for _, keys := range [][2]string{{attrExpiresAt, ""}, {"key", attrExpiresAt}} {
		if p := javaLike(keys[0], keys[1], "", leaseMillis); len(p.removed) > 0 {
			t.Errorf("keys %q: a grant removes %q", keys, p.removed)
		}
	}
}

// During a migration to layout native, clients that still use another layout read the rows of
// sessions.
func TestSessionRowIsNotMistakenForLock(t *testing.T) {
	session := with(protocol.Item{"key": text(protocol.SessionPrefix + "abcdefghijklmnopqrstuvwxyz"), attrKind: text("session")})
	for _, l := range []layout.Layout{layout.Native{}, layout.AWSLabs{}, layout.Dynamolock{}} {
		p := mustProtocol(t, l)
		if r, ok := LockBut(p, session, attrKind); ok {
			t.Errorf("%s: LockBut returned the row of a session as a lock held by %s", l.Name(), r.Owner)
		}
		// Users may have added an attribute of their own called kind to locks, with these values.
		for _, kind := range []string{"invoice", "session", "rw"} {
			if r, ok := LockBut(p, with(protocol.Item{attrKind: text(kind)}), attrKind); !ok || r.Released {
				t.Errorf("%s: LockBut did not return a held lock with the attribute kind %s", l.Name(), kind)
			}
		}
	}
}

func TestRowWithUnreadableKindOrTokenStillCountsAsLock(t *testing.T) {
	for _, l := range []layout.Layout{layout.Native{}, layout.AWSLabs{}, layout.Dynamolock{}} {
		p := mustProtocol(t, l)
		for name, own := range map[string]protocol.Item{
			"kind":           {attrKind: text("invoice")},
			"token":          {attrToken: text("none")},
			"kind and token": {attrKind: text("invoice"), attrToken: text("none")},
		} {
			own[attrReleased] = released
			attribute := attrKind
			if own[attrKind] == nil {
				attribute = attrToken
			}
			if r, ok := LockBut(p, with(own), attribute); !ok || !r.Released {
				t.Errorf("%s: %s: %+v, %v", l.Name(), name, r, ok)
			}
		}
		if r, ok := LockBut(p, with(protocol.Item{attrReleased: text("no"), attrOwner: number(1)}), attrReleased); ok {
			t.Errorf("%s: with a damaged owner: %+v", l.Name(), r)
		}
	}
}

func TestRowWithUnreadableKindAndUnreadableDataIsNoLock(t *testing.T) {
	p := mustProtocol(t, layout.Native{})
	damaged := with(protocol.Item{attrKind: text("invoice"), attrData: text("not binary")})
	if r, ok := LockBut(p, damaged, attrKind); ok {
		t.Errorf("read %+v", r)
	}
}
