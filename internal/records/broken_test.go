package records

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

func TestUnreadableBreakNoteIsIgnored(t *testing.T) {
	p, err := Of(layout.Native{})
	if err != nil {
		t.Fatal(err)
	}
	record := func(broken types.AttributeValue) protocol.Record {
		t.Helper()
		r, err := p.Decode(protocol.Item{
			"key": text("job"), "ownerName": text("java"), "leaseDuration": text("20000"), "recordVersionNumber": text("v1"), "lastBreak": broken,
		})
		if err != nil || r.Attributes != nil {
			t.Errorf("%v: attributes %v, %v", broken, r.Attributes, err)
		}
		return r
	}
	whole := protocol.Item{"by": text("me"), "at": number(1764230400000), "reason": text("stuck"), "fencingToken": number(42)}
	if b := record(&types.AttributeValueMemberM{Value: whole}).Broken; b == nil ||
		*b != (protocol.Broken{By: "me", At: time.UnixMilli(1764230400000), Reason: "stuck", Token: 42}) {
		t.Errorf("reads as %+v", b)
	}
	least := protocol.Item{"by": text("me"), "at": number(1764230400000)}
	if b := record(&types.AttributeValueMemberM{Value: least}).Broken; b == nil || b.Reason != "" || b.Token != 0 {
		t.Errorf("without a reason, of a grant without a token: %+v", b)
	}
	for name, change := range map[string]types.AttributeValue{
		"by": nil, "at": text("now"), "reason": number(1), "fencingToken": number(-1),
	} {
		odd := protocol.Item{"by": text("me"), "at": number(1), "reason": text("stuck"), "fencingToken": number(42)}
		if odd[name] = change; change == nil {
			delete(odd, name)
		}
		if b := record(&types.AttributeValueMemberM{Value: odd}).Broken; b != nil {
			t.Errorf("%s: %+v", name, b)
		}
	}
	if b := record(text("me")).Broken; b != nil {
		t.Errorf("no map: %+v", b)
	}
}
