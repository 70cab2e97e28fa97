package records_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

var (
	monday = protocol.Once{Label: "mon"}
	epoch  = protocol.Once{Period: time.UnixMilli(0).UTC()}
	first  = protocol.Once{Period: time.UnixMilli(1000).UTC()}
	second = protocol.Once{Period: time.UnixMilli(2000).UTC()}
)

// mark returns the done mark that a release of h stores after the given work
// was done.
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

func TestGrantWithOnceIsRejectedIfWorkIsMarkedDone(t *testing.T) {
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
		if lands := b.lands(b.Grant(g)); lands != tc.lands {
			t.Errorf("%+v wanted, %+v marked: lands %v", tc.wanted, tc.marked, lands)
		}
	}
}

func TestUnreadableDoneMarkIsIgnoredByGrantAndReader(t *testing.T) {
	for name, mark := range map[string]types.AttributeValue{
		"no map":               text("mon"),
		"empty":                &types.AttributeValueMemberM{},
		"of other types":       &types.AttributeValueMemberM{Value: protocol.Item{"once": decimal("1"), "period": text("1")}},
		"a fraction":           &types.AttributeValueMemberM{Value: protocol.Item{"period": decimal("1999.5")}},
		"just below the epoch": &types.AttributeValueMemberM{Value: protocol.Item{"period": decimal("-0.5")}},
		"out of range":         &types.AttributeValueMemberM{Value: protocol.Item{"period": decimal("1e30")}},
		"out of range, below":  &types.AttributeValueMemberM{Value: protocol.Item{"period": decimal("-1e30")}},
		"both":                 &types.AttributeValueMemberM{Value: protocol.Item{"once": text("mon"), "period": decimal("1000")}},
		"damaged besides":      &types.AttributeValueMemberM{Value: protocol.Item{"once": text("mon"), "by": decimal("1"), "at": text("x"), "fencingToken": decimal("-1")}},
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
				t.Errorf("%s, %+v wanted: lands %v, and reads as done %v", name, wanted, lands, done)
			}
		}
	}
}

func TestUnmarkRemovesOnlyMatchingDoneMark(t *testing.T) {
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
		if b.lands(p.Unmark(b.lockKey(), other)) {
			t.Errorf("another %s: forgotten", name)
		}
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
		t.Errorf("it made of %+v %+v", before, after)
	}
	if !b.lands(b.Renew(h, protocol.Renewal{Version: v3, Lease: lease, Now: granted})) {
		t.Error("a renewal beside it fails")
	}
	h.Versions = []string{v3}
	b.must(b.HandOver(h, b.grant(g2)))
	if r := b.record(); r.Grant != g2 || r.Asked == g2 {
		t.Errorf("the next grant is asked: %+v", r)
	}
}

func TestUnreadableStepDownRequestIsIgnored(t *testing.T) {
	b := newBench(t, layout.Native{})
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
