package records_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

// nth is the waiter of that number.
func nth(n int) protocol.Waiter {
	return protocol.Waiter{
		Grant: fmt.Sprintf("c0000000-0000-4000-8000-%012d", n),
		Owner: fmt.Sprint("c", n, "/", strings.Repeat("q", 25), string("ab"[n%2])),
	}
}

func lining(t *testing.T) (*bench, protocol.Lining) {
	b, _ := newBench(t, layout.Native{})
	return b, b.Protocol.(protocol.Lining)
}

func (b *bench) line() []protocol.Waiter { return b.record().Waiters }

func TestALineIsReadAsItWasJoined(t *testing.T) {
	b, p := lining(t)
	_, _ = b.hold()
	var want []protocol.Waiter
	for i := range 5 {
		if !b.lands(p.Join(b.lockKey(), nth(i))) {
			t.Fatalf("number %d does not join", i)
		}
		want = append(want, nth(i))
	}
	if got := b.line(); !slices.Equal(got, want) {
		t.Errorf("line %v", got)
	}
	if b.lands(p.Join(b.lockKey(), nth(2))) {
		t.Error("who is in line joined again")
	}
}

func TestAFullLineIsNotJoined(t *testing.T) {
	b, p := lining(t)
	_, _ = b.hold()
	joined := 0
	for i := range 2 * protocol.MostWaiters {
		if b.lands(p.Join(b.lockKey(), nth(i))) {
			joined++
		}
	}
	if joined != protocol.MostWaiters {
		t.Errorf("%d have joined", joined)
	}
	short := protocol.Record{}
	for short.HasRoom(1, nth(1).Owner) {
		short.Waiters = append(short.Waiters, nth(1))
	}
	if n := len(short.Waiters); n < 16 || n > 18 {
		t.Errorf("%d of short names find room in a kilobyte", n)
	}
}

func TestOnlyTheLineOfAHeldLockIsJoined(t *testing.T) {
	b, p := lining(t)
	_, held := b.hold()
	b.landsIn("join", held, func() *protocol.Write { return p.Join(b.lockKey(), nth(1)) },
		same, version, grant, token, holder, spent, expired)
}

func TestTheHeadAloneIsHandedTheKeyAndLeavesTheLine(t *testing.T) {
	b, p := lining(t)
	h, _ := b.hold()
	handTo := func(w protocol.Waiter) *protocol.Write {
		return p.HandToHead(h, protocol.Grant{Key: b.lockKey(), Owner: w.Owner, Version: v9, ID: w.Grant, Lease: lease, Now: granted})
	}
	b.lands(p.Join(b.lockKey(), nth(1)))
	b.lands(p.Join(b.lockKey(), nth(2)))
	held := b.item()
	if b.lands(handTo(nth(2))) {
		t.Error("the second was handed the key")
	}
	b.landsIn("hand to head", held, func() *protocol.Write { return handTo(nth(1)) }, same, kind, expired)
	b.put(held)
	b.lands(handTo(nth(1)))
	r := b.record()
	if r.Version != v9 || r.Grant != nth(1).Grant || r.Owner != nth(1).Owner || r.Token != h.Token+1 || !slices.Equal(r.Waiters, []protocol.Waiter{nth(2)}) {
		t.Errorf("%+v", r)
	}
	if b.lands(handTo(nth(1))) {
		t.Error("a second copy lands")
	}
}

func TestWhoIsGrantedTheKeyLeavesTheLineAtItsOwnPlaceAlone(t *testing.T) {
	b, p := lining(t)
	h, _ := b.hold()
	for i := range 3 {
		b.lands(p.Join(b.lockKey(), nth(i)))
	}
	b.lands(b.Release(h, protocol.Release{Version: v3, Expires: granted}))
	released := b.item()
	grant := func(index, of int) *protocol.Write {
		g := b.grant(g2)
		g.InLine = &protocol.Place{Index: index, Of: nth(of)}
		return b.Grant(g)
	}
	for _, at := range [][2]int{{0, 1}, {2, 1}, {7, 1}} {
		if b.lands(grant(at[0], at[1])) {
			t.Errorf("number %d was granted the key at place %d", at[1], at[0])
		}
	}
	if !b.lands(grant(1, 1)) || !slices.Equal(b.line(), []protocol.Waiter{nth(0), nth(2)}) {
		t.Errorf("line %v", b.line())
	}
	b.put(nil)
	if b.lands(grant(1, 1)) {
		t.Error("granted a place in the line of no record")
	}
	b.put(released)
	g := b.grant(g2)
	g.InLine, g.NoLine = &protocol.Place{Index: 9, Of: nth(9)}, true
	if !b.lands(b.Grant(g)) || len(b.line()) > 0 {
		t.Errorf("not erased: %v", b.line())
	}
}

func TestWhoLeavesALineLeavesItsOwnPlaceAlone(t *testing.T) {
	b, p := lining(t)
	_, _ = b.hold()
	for i := range 3 {
		b.lands(p.Join(b.lockKey(), nth(i)))
	}
	leave := func(index, of int) bool {
		return b.lands(p.Leave(b.lockKey(), protocol.Place{Index: index, Of: nth(of)}))
	}
	if leave(0, 1) || leave(3, 1) || !leave(1, 1) || !slices.Equal(b.line(), []protocol.Waiter{nth(0), nth(2)}) {
		t.Errorf("line %v", b.line())
	}
	b.put(nil)
	if leave(0, 1) {
		t.Error("left the line of no record")
	}
}

func TestWhatIsNoLineIsReadAsNone(t *testing.T) {
	b, p := lining(t)
	_, held := b.hold()
	for _, odd := range []types.AttributeValue{
		text("odd"),
		&types.AttributeValueMemberL{Value: []types.AttributeValue{text("odd")}},
		&types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberB{Value: []byte("short")}}},
		&types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberB{Value: make([]byte, 40)}}},
	} {
		held["waiters"] = odd
		b.put(held)
		if got := b.line(); got != nil {
			t.Errorf("%v", got)
		}
		_ = b.lands(p.Join(b.lockKey(), nth(1))) // no error of the request
	}
}
