package inflight

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestRequestWaitsUntilSlotIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(2)
		a, _ := l.Take(t.Context())
		b, _ := l.Take(t.Context())
		var order []string
		for _, name := range []string{"c", "d"} {
			go func() {
				leave, _ := l.Take(t.Context())
				order = append(order, name)
				leave()
			}()
			synctest.Wait()
		}
		if len(order) > 0 {
			t.Fatalf("both slots are taken, and sent are %v", order)
		}
		a()
		a() // a frees the slot of the first request; its second call must free no other slot
		synctest.Wait()
		if !slices.Equal(order, []string{"c", "d"}) {
			t.Errorf("sent are %v", order)
		}
		b()
		if l.free != 2 {
			t.Errorf("all have left, and %d slots are free", l.free)
		}
	})
}

func TestHangingRequestLosesItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(1)
		hangs, _ := l.Take(t.Context())
		began := time.Now()
		leave, ok := l.Take(t.Context())
		if waited := time.Since(began); !ok || waited != time.Second {
			t.Errorf("there was a slot after %v: %t", waited, ok)
		}
		// The hanging request is answered only now, after another request has taken its
		// slot.
		hangs()
		if l.free != 0 {
			t.Errorf("%d slots are free while one request is under way", l.free)
		}
		leave()
	})
}

func TestRepeatedRequestIsSentAfterNewRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(1)
		leave, _ := l.Take(t.Context())
		e := l.Effort(leave)
		if leave, _ = e.Take(t.Context()); l.free != 0 {
			t.Fatal("the first request of an effort takes a slot beside its own")
		}
		var order []string
		send := func(name string, take func(context.Context) (func(), bool)) {
			go func() {
				leave, _ := take(t.Context())
				order = append(order, name)
				leave()
			}()
			synctest.Wait()
		}
		send("repeated", e.Take)
		send("first", l.Take)
		leave()
		synctest.Wait()
		if !slices.Equal(order, []string{"first", "repeated"}) {
			t.Errorf("sent were %v", order)
		}
	})
}

func TestCancelledWaitDoesNotTakeSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(1)
		leave, _ := l.Take(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, ok := l.Take(ctx); ok {
			t.Error("there was a slot")
		}
		leave()
		if l.free != 1 || len(l.first) > 0 {
			t.Errorf("%d slots are free, and %d wait", l.free, len(l.first))
		}
		leave, ok := (*Effort)(nil).Take(ctx)
		if !ok {
			t.Error("no effort, and it waits for a slot")
		}
		leave()
	})
}

// A waiter that leaves the queue has no slot to free. If it freed one, a request that is
// never sent would get this slot and keep it forever.
func TestLimiterFreesNoSlotIfWaitingRequestGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(1)
		leave, _ := l.Take(t.Context())
		sent := false
		go func() {
			leave, _ := l.Take(t.Context())
			sent = true
			leave()
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		// This call waits at the head of the repeated requests until its context ends.
		if _, ok := l.Effort(nil).Take(ctx); ok {
			t.Error("there was a slot")
		}
		synctest.Wait()
		if sent {
			t.Error("another was sent beside the one that has the only slot")
		}
		leave()
		synctest.Wait()
		if !sent || l.free != 1 {
			t.Errorf("the slot was left: another was sent: %t, and %d slots are free", sent, l.free)
		}
	})
}
