package acquire_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/acquire"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// record returns the record of a key, which must exist.
func (w *world) record(key string) protocol.Record {
	w.Helper()
	r, err := w.proto.Decode(w.item(key))
	if err != nil {
		w.Error(err)
	}
	return r
}

// handToHead hands the key to the head of its record's queue, as a release does. The head's
// lease is term.
func (h *holding) handToHead(term time.Duration) {
	head := h.c.w.record(h.want.Key.Partition).Waiters[0]
	hold := protocol.Hold{Key: h.want.Key, Owner: h.grant.Owner, Grants: []string{h.grant.Version}, Versions: []string{h.version}}
	h.c.w.write(h.c.w.proto.(protocol.Native).HandToHead(hold, protocol.Grant{
		Key: h.want.Key, Owner: head.Owner, ID: head.Grant, Version: protocol.NewVersion(), Lease: term, Now: time.Now(),
	}))
}

func TestHandedOverKeyBrokenBeforeWaiterReadsIsNotHeld(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		holder := w.client("holder").one("job")
		c := w.client("me")
		updates := 0
		c.wire.fate = func(_ int, name string, deliver func()) error {
			if name == "update" {
				if updates++; updates == 3 { // the first update is a rejected grant, the second a join, and the third the grant of the free key
					w.client("other").one("job").handToHead(timing.Lease)
					w.write(w.proto.Break(w.record("job"), protocol.Break{Version: protocol.NewVersion()}))
				}
			}
			deliver()
			return nil
		}
		time.AfterFunc(time.Second, func() { holder.release() })
		c.one("job")
		if held := w.owner("job"); held != "me" || updates != 4 {
			t.Errorf("held by %q after %d writes", held, updates)
		}
	})
}

func TestQueueHeadThatReplacesGrantKeepsQueueOfOtherWaiters(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		holder := w.client("holder").one("job")
		c := w.client("me")
		behind := protocol.Waiter{Grant: protocol.NewVersion(), Owner: protocol.NewOwner("behind")}
		time.AfterFunc(time.Second, func() {
			w.write(c.Native.Join(holder.want.Key, behind))
			holder.handToHead(decide.HandOverLease(timing.Lease))
		})
		c.one("job", func(want *acquire.Want) { // makes the call want an attribute that another client does not write when it hands the key over
			want.Changes.Attributes = protocol.Item{"note": &types.AttributeValueMemberS{Value: "mine"}}
		})
		r := w.record("job")
		if r.Grant != c.grants[0].Version || !slices.Equal(r.Waiters, []protocol.Waiter{behind}) {
			t.Errorf("granted %s, line %v", r.Grant, r.Waiters)
		}
	})
}

// If the entry remained in the queue, a release would hand the key to it, although no
// waiter uses the entry.
func TestGrantRemovesQueueEntryOfSameWaiter(t *testing.T) {
	for _, landed := range []bool{true, false} {
		inWorld(t, func(t *testing.T, w *world) {
			holder := w.client("holder").one("job")
			c := w.client("me")
			c.Left.Note(holder.want.Key, w.item("job"), c.Now()) // shows the holder to the waiter, so that it joins before it sends a grant
			c.wire.fate = func(n int, _ string, deliver func()) error {
				if n > 1 {
					deliver()
					return nil
				}
				if landed {
					deliver()
				}
				holder.release() // the holder has not seen the queue, so the release hands the key to nobody
				return errReset
			}
			c.one("job")
			if r := w.record("job"); r.Grant != c.grants[0].Version || len(r.Waiters) > 0 {
				t.Errorf("landed %v: granted %s, line %v", landed, r.Grant, r.Waiters)
			}
		})
	}
}

func TestHolderIsReportedWhenQueueIsFull(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		holder := w.client("holder").one("job")
		c := w.client("me")
		updates := 0
		c.wire.fate = func(_ int, name string, deliver func()) error {
			if name == "update" {
				if updates++; updates == 2 { // the first update is a rejected grant, and the second is the join
					for i := range protocol.MostWaiters {
						w.write(c.Native.Join(holder.want.Key, protocol.Waiter{Grant: protocol.NewVersion(), Owner: protocol.NewOwner(fmt.Sprint(i))}))
					}
				}
			}
			deliver()
			return nil
		}
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		_, _ = c.One(ctx, c.want("job"))
		c.left()
		if !slices.Equal(c.waiting, []string{"holder"}) {
			t.Errorf("reported to wait for %v", c.waiting)
		}
	})
}

// Thousands of waiters may be outside a full queue while its key keeps changing hands.
func TestWaiterWithoutPlaceInFullQueueReadsRarely(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		holder := w.client("holder").one("job")
		c := w.client("me")
		for i := range protocol.MostWaiters {
			w.write(c.Native.Join(holder.want.Key, protocol.Waiter{Grant: protocol.NewVersion(), Owner: protocol.NewOwner(fmt.Sprint(i))}))
		}
		ctx, leave := context.WithCancel(t.Context())
		c.env.Detach(func() { _, _ = c.One(ctx, c.want("job")) })
		hold := protocol.Hold{Key: holder.want.Key, Owner: holder.grant.Owner, Grants: []string{holder.grant.Version}, Versions: []string{holder.version}}
		for i := range 400 { // the loop takes 20 s
			time.Sleep(50 * time.Millisecond)
			g := protocol.Grant{Key: hold.Key, Owner: hold.Owner, Version: protocol.NewVersion(), Lease: timing.Lease, Now: time.Now()}
			w.write(w.proto.HandOver(hold, g))
			hold.Grants, hold.Versions = []string{g.Version}, []string{g.Version}
			if i == 200 {
				c.wire.mu.Lock()
				c.wire.sent = nil
				c.wire.mu.Unlock()
			}
		}
		if n := len(c.wire.requests()); n < 5 || n > 10 { // the waiter reads rarely although it has waited for a long time
			t.Errorf("%d requests in ten seconds", n)
		}
		leave()
		c.left()
	})
}
