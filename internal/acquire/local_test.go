package acquire_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold/internal/acquire"
	"github.com/leasehold-go/leasehold/internal/localqueue"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// leaving is a context that has ended. Its method Err calls first and then
// returns the error.
type leaving struct {
	context.Context
	first func()
}

func (l leaving) Done() <-chan struct{} {
	ended := make(chan struct{})
	close(ended)
	return ended
}

func (l leaving) Err() error {
	l.first()
	return context.Canceled
}

func TestKeyHandedToCancelledCallWithoutRenewalIsFreed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.client("a")
		h := c.one("job")
		c.slow = time.Second
		ctx := leaving{context.WithoutCancel(t.Context()), func() {
			next := c.Local.Successor(h.want.Key, h, false)
			if !c.Local.HandOver(next, next.Caller.Want.Hold(t.Context(), h.grant)) {
				t.Error("it has left already")
			}
		}}
		if _, err := c.One(ctx, c.want("job", func(want *acquire.Want) { want.Manual = true })); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if held := w.owner("job"); held != "" || len(c.given) != 1 {
			t.Errorf("held by %q; gave back %v", held, c.given)
		}
	})
}

func TestLocalTurnOfCancelledCallGoesToNextWaiter(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.client("a")
		h := c.one("job")
		if _, err := c.One(leaving{context.WithoutCancel(t.Context()), h.release}, c.want("job")); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if _, err := c.One(w.within(time.Second), c.want("job")); err != nil {
			t.Errorf("nobody has the key: %v", err)
		}
	})
}

// join adds a waiter to c's local queue of a key. The waiter never leaves the queue.
// The function turn reports whether the waiter's turn has come.
func (c *client) join(key string) (turn func() bool) {
	place := c.Local.NewWaiter(protocol.Key{Partition: key}, acquire.Caller{}, localqueue.Wishes{}, nil)
	c.Local.Join(place)
	return func() bool {
		select {
		case <-place.Turn():
			return true
		default:
			return false
		}
	}
}

func TestAcquireAnyPassesTurnOfDamagedKeyToOneWaiter(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.damage("a")
		time.AfterFunc(2*time.Second, w.client("other").one("b").release)
		c := w.client("me")
		var first, second func() bool
		time.AfterFunc(time.Millisecond, func() { first, second = c.join("a"), c.join("a") })
		c.wire.fate = before(1, "update", func() { time.Sleep(time.Second) }) // delays the grant of a, whose record is damaged
		if found, err := c.First(t.Context(), c.wants("a", "b")); err != nil || keysOf(found) != "b" {
			t.Fatalf("granted %s: %v", keysOf(found), err)
		}
		c.left()
		synctest.Wait() // waits until both waiters are in the local queue
		if !first() || second() {
			t.Error("not the first in its queue has the turn alone")
		}
	})
}

func TestErrorOfAcquireAnyNamesKeyThatIsLeftToOtherProcesses(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.client("other").one("b")
		c := w.client("me")
		c.join("a")
		c.wire.fate = before(1, "update", func() { // before the grant request for b is delivered
			c.Local.PassAfter(protocol.Key{Partition: "a"}, nil, time.Minute)
		})
		_, err := c.First(t.Context(), edited(c.wants("a", "b"), noWait))
		if held := (*heldError)(nil); !errors.As(err, &held) || held.key.Partition != "a" || held.holder != "me" {
			t.Errorf("%v", err)
		}
	})
}

func TestAcquireAllSendsNothingWhileOtherProcessesGoFirst(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.client("me")
		c.join("b")
		time.AfterFunc(time.Second, func() { c.Local.PassAfter(protocol.Key{Partition: "b"}, nil, time.Minute) })
		if _, err := c.All(w.within(2*time.Second), c.wants("b", "c")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		c.left()
		if sent := c.wire.requests(); len(sent) > 0 {
			t.Errorf("sent %v", sent)
		}
	})
}
