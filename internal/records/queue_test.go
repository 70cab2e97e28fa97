package records_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

// nth returns waiter number n.
func nth(n int) protocol.Waiter {
	return protocol.Waiter{
		Grant: fmt.Sprintf("c0000000-0000-4000-8000-%012d", n),
		Owner: fmt.Sprint("c", n, "/", strings.Repeat("q", 25), string("ab"[n%2])),
	}
}

// lining returns a table with a held record. The record's queue contains the waiters nth(0) to
// nth(joined-1).
func lining(t *testing.T, joined int) (b *bench, p protocol.Native, h protocol.Hold) {
	t.Helper()
	b = newBench(t, layout.Native{})
	p = b.Protocol.(protocol.Native)
	h, _ = b.hold()
	for i := range joined {
		b.must(p.Join(b.lockKey(), nth(i)))
	}
	return b, p, h
}

func (b *bench) line() []protocol.Waiter { return b.record().Waiters }

func TestQueueIsReadInOrderInWhichWaitersJoined(t *testing.T) {
	b, p, _ := lining(t, 5)
	if got := b.line(); !slices.Equal(got, []protocol.Waiter{nth(0), nth(1), nth(2), nth(3), nth(4)}) {
		t.Errorf("queue %v", got)
	}
	b.rejects(p.Join(b.lockKey(), nth(2)), "a queued waiter joined again")
}

func TestJoinIsRejectedIfQueueIsFull(t *testing.T) {
	b, p, _ := lining(t, 0)
	joined := 0
	for i := range 2 * protocol.MostWaiters {
		if b.lands(p.Join(b.lockKey(), nth(i))) {
			joined++
		}
	}
	lab.Want(t, "joined", joined, protocol.MostWaiters)
}

func TestWaiterCanJoinQueueOnlyIfLockIsHeld(t *testing.T) {
	b, p, _ := lining(t, 0)
	b.landsIn("join", b.item(), func() *protocol.Write { return p.Join(b.lockKey(), nth(1)) },
		same, version, grant, token, holder, spent, expired)
}

func TestKeyIsHandedOnlyToHeadOfQueue(t *testing.T) {
	b, p, h := lining(t, 2)
	handTo := func(w protocol.Waiter) *protocol.Write {
		return p.HandToHead(h, protocol.Grant{Key: b.lockKey(), Owner: w.Owner, Version: v9, ID: w.Grant, Lease: lease, Now: granted})
	}
	held := b.item()
	b.rejects(handTo(nth(1)), "the second waiter was handed the key")
	b.landsIn("hand to head", held, func() *protocol.Write { return handTo(nth(0)) }, same, kind, expired)
	b.put(held)
	b.must(handTo(nth(0)))
	r := b.record()
	if r.Version != v9 || r.Grant != nth(0).Grant || r.Owner != nth(0).Owner || r.Token != h.Token+1 || !slices.Equal(r.Waiters, []protocol.Waiter{nth(1)}) {
		t.Errorf("%+v", r)
	}
	b.rejects(handTo(nth(0)), "a second copy of the hand-over was applied")
}

func TestGrantToWaiterRemovesItsQueueEntryAndNoOther(t *testing.T) {
	b, _, h := lining(t, 3)
	b.must(b.Release(h, protocol.Release{Version: v3, Expires: granted}))
	released := b.item()
	grant := func(index, of int) *protocol.Write {
		g := b.grant(g2)
		g.Entry = &protocol.QueueEntry{Index: index, Of: nth(of)}
		return b.Grant(g)
	}
	for _, at := range [][2]int{{0, 1}, {2, 1}, {7, 1}} {
		b.rejects(grant(at[0], at[1]), "waiter %d was granted the key with index %d", at[1], at[0])
	}
	if !b.lands(grant(1, 1)) || !slices.Equal(b.line(), []protocol.Waiter{nth(0), nth(2)}) {
		t.Errorf("queue %v", b.line())
	}
	b.put(nil)
	b.rejects(grant(1, 1), "a grant that removes an entry was applied without a record")
	b.put(released)
	g := b.grant(g2)
	g.Entry, g.Dead = &protocol.QueueEntry{Index: 9, Of: nth(9)}, &protocol.Record{Version: v3}
	if !b.lands(b.Grant(g)) || len(b.line()) > 0 {
		t.Errorf("the queue is not erased: %v", b.line())
	}
}

func TestLeavingWaiterRemovesOnlyItsOwnQueueEntry(t *testing.T) {
	b, p, _ := lining(t, 3)
	leave := func(index, of int) bool {
		return b.lands(p.Leave(b.lockKey(), protocol.QueueEntry{Index: index, Of: nth(of)}))
	}
	if leave(0, 1) || leave(3, 1) || !leave(1, 1) || !slices.Equal(b.line(), []protocol.Waiter{nth(0), nth(2)}) {
		t.Errorf("queue %v", b.line())
	}
	b.put(nil)
	if leave(0, 1) {
		t.Error("a removal of an entry was applied without a record")
	}
}

func TestDamagedQueueIsReadAsEmpty(t *testing.T) {
	b, p, _ := lining(t, 0)
	held := b.item()
	for _, odd := range []types.AttributeValue{
		text("odd"),
		&types.AttributeValueMemberL{Value: []types.AttributeValue{text("odd")}},
		&types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberB{Value: []byte("short")}}},
		&types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberB{Value: make([]byte, 40)}}},
	} {
		held["waiters"] = odd
		b.put(held)
		lab.Want(t, "queue", b.line(), nil)
		// DynamoDB may apply or reject the join. But the request must be valid: otherwise b.lands
		// fails the test.
		_ = b.lands(p.Join(b.lockKey(), nth(1)))
	}
}

// nextWrites lists writes that may follow a grant. Each is a write of the holder h, of an
// operator, or of the next holder.
var nextWrites = map[string]func(b *bench, h protocol.Hold) *protocol.Write{
	"takeover": func(b *bench, _ protocol.Hold) *protocol.Write {
		g, r := b.grant(g2), b.record()
		g.Dead = &r
		return b.Grant(g)
	},
	"release": func(b *bench, h protocol.Hold) *protocol.Write {
		return b.Release(h, protocol.Release{Version: v3, Expires: granted})
	},
	"release with a mark": func(b *bench, h protocol.Hold) *protocol.Write {
		return b.Release(h, protocol.Release{Version: v3, Expires: granted, Done: b.mark(h, monday)})
	},
	"break": func(b *bench, _ protocol.Hold) *protocol.Write {
		return b.Break(b.record(), protocol.Break{Version: v3})
	},
	"renewal": func(b *bench, h protocol.Hold) *protocol.Write {
		return b.Renew(h, protocol.Renewal{Version: v3, Lease: lease})
	},
	"local hand-over": func(b *bench, h protocol.Hold) *protocol.Write { return b.HandOver(h, b.grant(g2)) },
	"grant over own attempts": func(b *bench, h protocol.Hold) *protocol.Write {
		g := b.grant(g2)
		g.Takeable = h.Versions
		return b.Grant(g)
	},
	"grant after a release": func(b *bench, h protocol.Hold) *protocol.Write {
		b.must(b.Release(h, protocol.Release{Version: v3, Expires: granted}))
		return b.Grant(b.grant(g2))
	},
}

func TestQueueIsErasedOnlyByTakeoverBreakOrReleaseWithDoneMark(t *testing.T) {
	for name, write := range nextWrites {
		t.Run(name, func(t *testing.T) {
			b, _, h := lining(t, 1)
			b.must(write(b, h))
			want := slices.Contains([]string{"takeover", "break", "release with a mark"}, name)
			lab.Want(t, "erased", len(b.line()) == 0, want)
		})
	}
}

func TestHandOverMarkIsRemovedByNextGrantOrRenewal(t *testing.T) {
	for _, name := range []string{"renewal", "local hand-over", "takeover", "grant after a release"} {
		t.Run(name, func(t *testing.T) {
			b, p, h := lining(t, 1)
			handed := protocol.Grant{Key: b.lockKey(), Owner: nth(0).Owner, Version: v9, ID: nth(0).Grant, Lease: lease, Now: granted}
			b.must(p.HandToHead(h, handed))
			if !b.record().Handed {
				t.Fatal("the hand-over is not marked")
			}
			h.Owner, h.Grants, h.Token, h.Versions = handed.Owner, []string{handed.ID}, h.Token+1, []string{v9}
			b.must(nextWrites[name](b, h))
			if b.record().Handed {
				t.Error("the mark is still there")
			}
		})
	}
}

func TestTakeoverStoresEndOfQueueSuspension(t *testing.T) {
	b, _, _ := lining(t, 0)
	until := time.UnixMilli(granted.Add(time.Minute).UnixMilli())
	take := func(until time.Time) protocol.Record {
		r, g := b.record(), b.grant(protocol.NewVersion())
		g.Dead, g.NoQueueUntil = &r, until
		b.must(b.Grant(g))
		return b.record()
	}
	if r := take(time.Time{}); !r.NoQueueUntil.IsZero() {
		t.Errorf("suspended until %v", r.NoQueueUntil)
	}
	if r := take(until); !r.NoQueueUntil.Equal(until) {
		t.Errorf("suspended until %v", r.NoQueueUntil)
	}
}

func TestDamagedHandOverMarkOrQueueSuspensionIsIgnored(t *testing.T) {
	b, _, _ := lining(t, 0)
	held := b.item()
	for _, odd := range []types.AttributeValue{text("odd"), &types.AttributeValueMemberBOOL{Value: true}, decimal("1.5"), decimal("1e60")} {
		held["handed"], held["noQueueUntil"] = odd, odd
		b.put(held)
		if r := b.record(); r.Handed || !r.NoQueueUntil.IsZero() {
			t.Errorf("%v: handed %v, suspended until %v", odd, r.Handed, r.NoQueueUntil)
		}
	}
}

// When users change the layout of a table from native to another layout, the attributes "handed"
// and "noQueueUntil" stay in the records.
func TestQueueAttributesAreIgnoredInLayoutsWithoutQueue(t *testing.T) {
	for _, l := range []layout.Layout{layout.AWSLabs{}, layout.Dynamolock{}, layout.PythonDynamoDBLock{}} {
		t.Run(l.Name(), func(t *testing.T) {
			b := newBench(t, l)
			h, held := b.hold()
			held["handed"], held["noQueueUntil"] = text("1"), decimal("1000")
			b.put(held)
			if r := b.record(); r.Grant == "" || r.Attributes != nil {
				t.Errorf("%+v", r)
			}
			if !b.lands(b.Renew(h, protocol.Renewal{Version: v3, Lease: lease, Now: granted})) {
				t.Error("the renewal was rejected")
			}
		})
	}
}
