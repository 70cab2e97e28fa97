package records_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/layout"
)

// boundedTable returns a table b and two protocols for it: b.Protocol for a client with MaxSkew,
// and plain for a client without.
func boundedTable(t *testing.T) (b *bench, plain protocol.Protocol) {
	t.Helper()
	b = newBench(t, layout.Native{})
	plain = b.Protocol
	b.Protocol = lab.Must(records.WithMaxSkew(b.Layout, time.Second))(t)
	return b, plain
}

func TestLeaseEndIsStoredByGrantAndRenewalIfMaxSkewIsSet(t *testing.T) {
	b, _ := boundedTable(t)
	g := b.grant(g1)
	g.Now = granted.Add(time.Microsecond)
	b.must(b.Grant(g))
	lab.Want(t, "lease end of a grant, rounded up", b.record().LeaseEnds.Sub(granted), lease+time.Millisecond)
	h := protocol.Hold{Key: b.lockKey(), Owner: owner, Grants: []string{g1}, Versions: []string{g1}}
	b.must(b.Renew(h, protocol.Renewal{Version: v2, Lease: time.Minute, Now: granted.Add(time.Second)}))
	lab.Want(t, "lease end of a renewal", b.record().LeaseEnds.Sub(granted), time.Minute+time.Second)
	h.Versions = []string{v2}
	b.must(b.HandOver(h, protocol.Grant{Key: b.lockKey(), Owner: owner, Version: g2, Lease: lease, Now: granted}))
	lab.Want(t, "lease end of a hand-over", b.record().LeaseEnds.Sub(granted), lease)
}

func TestLeaseEndIsIgnoredAfterRenewalByClientWithoutMaxSkew(t *testing.T) {
	b, plain := boundedTable(t)
	b.must(b.Grant(b.grant(g1)))
	h := protocol.Hold{Key: b.lockKey(), Owner: owner, Grants: []string{g1}, Versions: []string{g1}}
	b.must(plain.Renew(h, protocol.Renewal{Version: v2, Lease: lease, Now: granted}))
	if b.item()["leaseEnds"] == nil {
		t.Fatal("the renewal has removed the lease end, so this test checks nothing")
	}
	if end := b.record().LeaseEnds; !end.IsZero() {
		t.Errorf("the lease end was decoded: %v", end)
	}
}

func TestUnreadableLeaseEndCountsAsAbsent(t *testing.T) {
	b, _ := boundedTable(t)
	b.must(b.Grant(b.grant(g1)))
	item := b.item()
	for name, v := range map[string]types.AttributeValue{
		"a text": text("1764000000000"), "too short": &types.AttributeValueMemberB{Value: []byte{1, 2, 3}},
		"without a version": &types.AttributeValueMemberB{Value: make([]byte, 8)},
	} {
		item["leaseEnds"] = v
		b.put(item)
		if r := b.record(); !r.LeaseEnds.IsZero() || r.Version != g1 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestLeaseEndIsNeitherStoredNorReadWithoutMaxSkew(t *testing.T) {
	b, plain := boundedTable(t)
	b.must(plain.Grant(b.grant(g1)))
	lab.Want(t, "lease end stored without MaxSkew", b.item()["leaseEnds"], nil)
	b.put(nil)
	b.must(b.Grant(b.grant(g1)))
	if r, err := plain.Decode(b.item()); err != nil || !r.LeaseEnds.IsZero() || len(r.Attributes) > 0 {
		t.Errorf("a client without MaxSkew has decoded %+v, %v", r, err)
	}
}

func TestHandOverToHeadOfQueueDoesNotStoreLeaseEnd(t *testing.T) {
	b, _ := boundedTable(t)
	h, _ := b.hold()
	p := b.Protocol.(protocol.Native)
	b.must(p.Join(b.lockKey(), nth(1)))
	b.must(p.HandToHead(h, protocol.Grant{Key: b.lockKey(), Owner: nth(1).Owner, Version: v9, ID: nth(1).Grant, Lease: lease, Now: granted}))
	if r := b.record(); r.Version != v9 || !r.LeaseEnds.IsZero() {
		t.Errorf("%+v", r)
	}
}

func TestLeaseEndInRecordIsIgnoredIfLockUsesSharedLease(t *testing.T) {
	b, _ := boundedTable(t)
	g := b.grant(g1)
	g.Session = protocol.ClientID(owner)
	b.must(b.Grant(g))
	if r := b.record(); r.Session == "" || !r.LeaseEnds.IsZero() {
		t.Errorf("%+v", r)
	}
}

func TestLeaseEndIsNotStoredIfLeaseIsLongerThan100Years(t *testing.T) {
	b, _ := boundedTable(t)
	g := b.grant(g1)
	g.Lease = 150 * 365 * 24 * time.Hour
	b.must(b.Grant(g))
	lab.Want(t, "stored lease end", b.item()["leaseEnds"], nil)
}

func TestReleaseOrBreakRemovesStoredLeaseEnd(t *testing.T) {
	b, _ := boundedTable(t)
	for name, free := range map[string]func(protocol.Hold) *protocol.Write{
		"release": func(h protocol.Hold) *protocol.Write { return b.Release(h, protocol.Release{Version: v9}) },
		"break":   func(protocol.Hold) *protocol.Write { return b.Break(b.record(), protocol.Break{Version: v9}) },
	} {
		h, _ := b.hold()
		if !b.lands(free(h)) || !b.record().Released || b.item()["leaseEnds"] != nil {
			t.Errorf("%s: %v", name, b.item()["leaseEnds"])
		}
	}
}

// DynamoDB charges one write unit for an item of up to 1 KB. A record must stay
// within one unit even if it has a full queue and a lease end.
func TestRecordWithFullQueueFitsInKilobyte(t *testing.T) {
	b, _ := boundedTable(t)
	g := b.grant(g1)
	g.Dead = &protocol.Record{Owner: another, Version: v0, Token: 12}
	b.must(b.Grant(g))
	p := b.Protocol.(protocol.Native)
	for i := range protocol.MostWaiters {
		b.must(p.Join(b.lockKey(), nth(i)))
	}
	if size := sizeOf(b.item()); len(b.line()) < 16 || size > 1024 {
		t.Errorf("%d in the queue: %d bytes", len(b.line()), size)
	}
}

// sizeOf returns the size of an item as DynamoDB computes it (DynamoDB Developer Guide,
// "DynamoDB item sizes and formats").
func sizeOf(item protocol.Item) int {
	n := 0
	for name, v := range item {
		n += len(name) + valueSize(v)
	}
	return n
}

func valueSize(v types.AttributeValue) int {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return len(v.Value)/2 + 2
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberL:
		n := 3
		for _, e := range v.Value {
			n += 1 + valueSize(e)
		}
		return n
	case *types.AttributeValueMemberM:
		return 3 + len(v.Value) + sizeOf(v.Value)
	}
	return 1
}
