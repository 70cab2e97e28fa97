package records

import (
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

// readNote stores a note under the given attribute name in a record of the Java client, and decodes
// the record. It checks that even a malformed note does not count as an attribute of the caller.
func readNote(t *testing.T, name string, note types.AttributeValue) protocol.Record {
	t.Helper()
	r, err := mustProtocol(t, layout.Native{}).Decode(with(protocol.Item{attrOwner: text("java"), name: note}))
	if err != nil || r.Attributes != nil {
		t.Errorf("%v: attributes %v, %v", note, r.Attributes, err)
	}
	return r
}

// noteWith returns a copy of a note with the given changes. A nil value removes the attribute.
func noteWith(note, changes protocol.Item) types.AttributeValue {
	note = maps.Clone(note)
	maps.Copy(note, changes)
	maps.DeleteFunc(note, func(_ string, v types.AttributeValue) bool { return v == nil })
	return &types.AttributeValueMemberM{Value: note}
}

func TestUnreadableDetailsOfBreakAreIgnored(t *testing.T) {
	at := time.UnixMilli(1764230400000)
	note := protocol.Item{"by": text("me"), "at": number(at.UnixMilli()), "reason": text("stuck"), "fencingToken": number(42)}
	for name, tc := range map[string]struct {
		note types.AttributeValue
		want *protocol.Broken
	}{
		"complete":                   {noteWith(note, nil), &protocol.Broken{By: "me", At: at, Reason: "stuck", Token: 42}},
		"without reason and token":   {noteWith(note, protocol.Item{"reason": nil, "fencingToken": nil}), &protocol.Broken{By: "me", At: at}},
		"without a name":             {noteWith(note, protocol.Item{"by": nil}), nil},
		"a time of another type":     {noteWith(note, protocol.Item{"at": text("now")}), nil},
		"a reason of another type":   {noteWith(note, protocol.Item{"reason": number(1)}), nil},
		"a token that is below zero": {noteWith(note, protocol.Item{"fencingToken": number(-1)}), nil},
		"not a map":                  {text("me"), nil},
	} {
		if got := readNote(t, "lastBreak", tc.note).Broken; !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

func TestUnreadableDetailsOfTakeoverAreIgnored(t *testing.T) {
	at := time.UnixMilli(1764230400000)
	note := protocol.Item{"from": text("me"), "at": number(at.UnixMilli()), "fencingToken": number(42)}
	for name, tc := range map[string]struct {
		note types.AttributeValue
		want *protocol.TakenOver
	}{
		"with another attribute":     {noteWith(note, protocol.Item{"more": text("x")}), &protocol.TakenOver{From: "me", At: at, Token: 42}},
		"of a grant without a token": {noteWith(note, protocol.Item{"fencingToken": nil}), &protocol.TakenOver{From: "me", At: at}},
		"without a name":             {noteWith(note, protocol.Item{"from": nil}), nil},
		"a time of another type":     {noteWith(note, protocol.Item{"at": text("now")}), nil},
		"a token that is below zero": {noteWith(note, protocol.Item{"fencingToken": number(-1)}), nil},
		"not a map":                  {text("me"), nil},
	} {
		if got := readNote(t, "lastTakeover", tc.note).TakenOver; !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

func TestAttributeIsReportedIfItStopsOtherLibraryFromUsingRecord(t *testing.T) {
	for _, tc := range []struct {
		layout  layout.Layout
		changes protocol.Item // changes to a record whose lease is stored in milliseconds
		want    string
	}{
		{layout.AWSLabs{}, nil, ""},
		{layout.AWSLabs{}, protocol.Item{attrLease: text("20s")}, "leaseDuration is 20s"},
		{layout.AWSLabs{}, protocol.Item{attrLease: nil}, ""},
		{layout.AWSLabs{}, protocol.Item{attrExpiresAt: number(1764230400)}, "expiresAt is present"},
		{layout.AWSLabs{SortKey: attrExpiresAt}, protocol.Item{attrExpiresAt: text("the key")}, ""},
		{layout.Dynamolock{}, nil, "leaseDuration is 20000"},
		{layout.Dynamolock{}, protocol.Item{attrLease: text("20s")}, ""},
	} {
		p := mustProtocol(t, tc.layout).(protocol.Rewriting)
		if got := p.Foreign(with(tc.changes)); got != tc.want {
			t.Errorf("%s, with %v: %q, want %q", tc.layout.Name(), tc.changes, got, tc.want)
		}
	}
}
