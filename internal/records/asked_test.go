package records_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

func TestStepDownRequestAppliesToOneGrantOnly(t *testing.T) {
	b, _ := newBench(t, layout.Native{})
	h, held := b.hold()
	ask := func() *protocol.Write { return b.Protocol.(protocol.Native).Ask(h, another, granted) }
	b.landsIn("ask", held, ask, same, version, kind, expired)

	b.put(held)
	before := b.record()
	for _, again := range []bool{false, true} {
		if !b.lands(ask()) {
			t.Fatalf("again: %v; it does not land", again)
		}
	}
	after := b.record()
	if after.Asked != before.Grant || after.Version != before.Version || after.Lease != before.Lease || after.Attributes != nil {
		t.Errorf("it made of %+v %+v", before, after)
	}
	if !b.lands(b.Renew(h, protocol.Renewal{Version: v3, Lease: lease, Now: granted})) {
		t.Error("a renewal beside it fails")
	}
	h.Versions = []string{v3}
	if !b.lands(b.HandOver(h, b.grant(g2))) {
		t.Fatal("no other is granted the key")
	}
	if r := b.record(); r.Grant != g2 || r.Asked == g2 {
		t.Errorf("the next grant is asked: %+v", r)
	}
}

func TestUnreadableStepDownRequestIsIgnored(t *testing.T) {
	b, _ := newBench(t, layout.Native{})
	_, held := b.hold()
	for name, v := range map[string]types.AttributeValue{
		"no map":         text("me"),
		"of no grant":    &types.AttributeValueMemberM{Value: protocol.Item{"by": text("me")}},
		"of no such":     &types.AttributeValueMemberM{Value: protocol.Item{"grantId": decimal("1")}},
		"an empty grant": &types.AttributeValueMemberM{Value: protocol.Item{"grantId": text("")}},
	} {
		held["stepDown"] = v
		b.put(held)
		if r := b.record(); r.Asked != "" || r.Grant == "" || r.Attributes != nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
