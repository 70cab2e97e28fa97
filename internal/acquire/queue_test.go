package acquire_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/acquire"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// handToHead hands the key to the head of its record's queue, as a release does. The head's
// lease lasts for term.
func (h *holding) handToHead(term time.Duration) {
	head := h.c.w.record(h.want.Key.Partition).Waiters[0]
	h.c.w.write(h.c.w.proto.(protocol.Native).HandToHead(h.hold(), protocol.Grant{
		Key: h.want.Key, Owner: head.Owner, ID: head.Grant, Version: protocol.NewVersion(), Lease: term, Now: time.Now(),
	}))
}

// fillQueue adds waiters to the queue of the key's record until the queue is
// full.
func (h *holding) fillQueue() {
	for i := range protocol.MostWaiters {
		h.c.w.write(h.c.Native.Join(h.want.Key, protocol.Waiter{Grant: protocol.NewVersion(), Owner: protocol.NewOwner(fmt.Sprint(i))}))
	}
}

func TestWaiterAcquiresAgainIfGrantHandedToItWasBroken(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		holder := w.client("holder").one("job")
		c := w.client("me")
		// The first update is a rejected grant, the second joins the queue, and the third grants
		// the free key.
		c.wire.fate = before(3, "update", func() {
			w.client("other").one("job").handToHead(timing.Lease)
			w.write(w.proto.Break(w.record("job"), protocol.Break{Version: protocol.NewVersion()}))
		})
		time.AfterFunc(time.Second, holder.release)
		c.one("job")
		if held, sent := w.owner("job"), c.wire.requests(); held != "me" || strings.Count(fmt.Sprint(sent), "update") != 4 {
			t.Errorf("held by %q after %v", held, sent)
		}
	})
}

func TestQueueHeadThatReplacesItsGrantKeepsOtherQueueEntries(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		holder := w.client("holder").one("job")
		c := w.client("me")
		behind := protocol.Waiter{Grant: protocol.NewVersion(), Owner: protocol.NewOwner("behind")}
		time.AfterFunc(time.Second, func() {
			w.write(c.Native.Join(holder.want.Key, behind))
			holder.handToHead(decide.HandOverLease(timing.Lease))
		})
		// The call asks for an attribute that a hand-over by another client does not write.
		c.one("job", func(want *acquire.Want) {
			want.Changes.Attributes = protocol.Item{"note": lab.Str("mine")}
		})
		r := w.record("job")
		if r.Grant != c.grants[0].Version || !slices.Equal(r.Waiters, []protocol.Waiter{behind}) {
			t.Errorf("granted %s, line %v", r.Grant, r.Waiters)
		}
	})
}

// If the waiter's entry stayed in the queue, a later release would hand the key to an
// entry that no waiter uses any more.
func TestGrantRemovesQueueEntryOfSameWaiter(t *testing.T) {
	eachInWorld(t, map[string]bool{"join applied": true, "join lost": false}, func(t *testing.T, w *world, applied bool) {
		holder := w.client("holder").one("job")
		c := w.client("me")
		// This shows the holder to the waiter. So the waiter joins the queue before it sends a
		// grant.
		c.Left.Note(holder.want.Key, w.item("job"), c.Now())
		c.wire.fate = func(n int, _ string, deliver func()) error {
			if n > 1 || applied {
				deliver()
			}
			if n > 1 {
				return nil
			}
			holder.release() // the holder has not read the queue, so its release hands the key to no waiter
			return errReset
		}
		c.one("job")
		if r := w.record("job"); r.Grant != c.grants[0].Version || len(r.Waiters) > 0 {
			t.Errorf("granted %s, line %v", r.Grant, r.Waiters)
		}
	})
}

func TestWaiterReportsHolderEvenIfQueueIsFull(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		holder := w.client("holder").one("job")
		c := w.client("me")
		// The first update is a rejected grant. The second joins the queue, which is full by
		// then.
		c.wire.fate = before(2, "update", holder.fillQueue)
		_, _ = c.One(w.within(time.Second), c.want("job"))
		c.left()
		if !slices.Equal(c.waiting, []string{"holder"}) {
			t.Errorf("reported to wait for %v", c.waiting)
		}
	})
}

// If a key is in demand, thousands of waiters may be outside its full queue
// while the key changes hands often. So each of them must read rarely.
func TestWaiterOutsideFullQueueReadsRarely(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		holder := w.client("holder").one("job")
		c := w.client("me")
		holder.fillQueue()
		ctx, leave := context.WithCancel(t.Context())
		c.env.Detach(func() { _, _ = c.One(ctx, c.want("job")) })
		hold := holder.hold()
		for i := range 400 { // 400 hand-overs, one every 50 ms, take 20 s
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
		if n := len(c.wire.requests()); n < 5 || n > 10 { // in its second ten seconds of waiting, the waiter sends five to ten requests
			t.Errorf("%d requests in ten seconds", n)
		}
		leave()
	})
}

func TestRecordLeftByHandOverIsUsedOnceWithinTwoSeconds(t *testing.T) {
	var l acquire.Left
	key := protocol.Key{Partition: "job"}
	at := func(d time.Duration) decide.Instant { return decide.Instant{Mono: time.Hour + d} }
	for after, want := range map[time.Duration]bool{0: true, 2*time.Second - 1: true, 2 * time.Second: false} {
		l.Note(key, protocol.Item{}, at(0))
		if _, sent, ok := l.Take(key, at(after)); ok != want || sent != at(0) && ok {
			t.Errorf("after %v: %v, sent at %v", after, ok, sent)
		}
		if _, _, ok := l.Take(key, at(after)); ok {
			t.Errorf("after %v: taken twice", after)
		}
	}
}

func TestRecordsLeftByHandOversAreKeptForSeveralKeys(t *testing.T) {
	var l acquire.Left
	old, key := protocol.Key{Partition: "old"}, protocol.Key{Partition: "job"}
	at := func(d time.Duration) decide.Instant { return decide.Instant{Mono: time.Hour + d} }
	l.Note(old, protocol.Item{}, at(0))
	l.Note(key, protocol.Item{}, at(time.Second))
	for _, k := range []protocol.Key{old, key} {
		if _, _, ok := l.Take(k, at(1500*time.Millisecond)); !ok {
			t.Errorf("%s is forgotten", k)
		}
	}
}

// A grant that was handed over has the id of its waiter's queue entry. So the client of that
// waiter knows the id as that of one of its own attempts.
func TestResumeDoesNotMistakeHandedOverGrantForOwnAttempt(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, _ := w.Client(lab.Config())
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(holder, "job")
		next := w.Queue(c, "job")
		lab.OK(t, lock.Renew(t.Context())) // the reply to this renewal shows the queue to the holder
		wire.Sent()
		w.Release(lock)
		handed := <-next
		if n := lab.Count(wire.Sent(), lab.Call.Grants); n > 0 {
			t.Fatal("it was not handed over")
		}
		other, _ := w.Client(lab.Config())
		resumed := w.Resume(other, w.Detach(handed))
		if _, err := c.TryAcquire(t.Context(), "job"); !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("error %v, though another process holds the key", err)
		}
		w.Release(resumed)
	})
}
