package records

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

func TestUnreadableTakeoverNoteIsIgnored(t *testing.T) {
	p, err := Of(layout.Native{})
	if err != nil {
		t.Fatal(err)
	}
	read := func(stored types.AttributeValue) *protocol.TakenOver {
		t.Helper()
		r, err := p.Decode(protocol.Item{
			"key": text("job"), "ownerName": text("java"), "leaseDuration": text("20000"), "recordVersionNumber": text("v1"), "lastTakeover": stored,
		})
		if err != nil || r.Attributes != nil {
			t.Errorf("%v: attributes %v, %v", stored, r.Attributes, err)
		}
		return r.TakenOver
	}
	odd := func(name string, v types.AttributeValue) types.AttributeValue {
		m := protocol.Item{"from": text("me"), "at": number(1764230400000), "fencingToken": number(42)}
		if m[name] = v; v == nil {
			delete(m, name)
		}
		return &types.AttributeValueMemberM{Value: m}
	}
	if got := read(odd("more", text("x"))); got == nil || *got != (protocol.TakenOver{From: "me", At: time.UnixMilli(1764230400000), Token: 42}) {
		t.Errorf("reads as %+v", got)
	}
	if got := read(odd("fencingToken", nil)); got == nil || got.Token != 0 {
		t.Errorf("of a grant without a token: %+v", got)
	}
	for name, v := range map[string]types.AttributeValue{"from": nil, "at": text("now"), "fencingToken": number(-1)} {
		if got := read(odd(name, v)); got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := read(text("me")); got != nil {
		t.Errorf("no map: %+v", got)
	}
}
