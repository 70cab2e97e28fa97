package places

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestRequestWaitsUntilPlaceIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(2)
		a, _ := p.Take(t.Context())
		b, _ := p.Take(t.Context())
		var order []string
		for _, name := range []string{"c", "d"} {
			go func() {
				leave, _ := p.Take(t.Context())
				order = append(order, name)
				leave()
			}()
			synctest.Wait()
		}
		if len(order) > 0 {
			t.Fatalf("both places are taken, and sent are %v", order)
		}
		a()
		a() // a second call frees no place
		synctest.Wait()
		if !slices.Equal(order, []string{"c", "d"}) {
			t.Errorf("sent are %v", order)
		}
		b()
		if p.free != 2 {
			t.Errorf("all have left, and %d places are free", p.free)
		}
	})
}

func TestHangingRequestLosesItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1)
		hangs, _ := p.Take(t.Context())
		began := time.Now()
		leave, ok := p.Take(t.Context())
		if waited := time.Since(began); !ok || waited != time.Second {
			t.Errorf("there was a place after %v: %t", waited, ok)
		}
		hangs() // answered late: its place is taken by another request
		if p.free != 0 {
			t.Errorf("%d places are free while one request is under way", p.free)
		}
		leave()
	})
}

func TestRepeatedRequestGoesAfterUnsentRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1)
		leave, _ := p.Take(t.Context())
		e := p.Effort(leave)
		if leave, _ = e.Take(t.Context()); p.free != 0 {
			t.Fatal("the first request of an effort takes a place beside its own")
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
		send("first", p.Take)
		leave()
		synctest.Wait()
		if !slices.Equal(order, []string{"first", "repeated"}) {
			t.Errorf("sent were %v", order)
		}
	})
}

func TestWaitThatEndsTakesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1)
		leave, _ := p.Take(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, ok := p.Take(ctx); ok {
			t.Error("there was a place")
		}
		leave()
		if p.free != 1 || len(p.first) > 0 {
			t.Errorf("%d places are free, and %d wait", p.free, len(p.first))
		}
		leave, ok := (*Effort)(nil).Take(ctx)
		if !ok {
			t.Error("no effort, and it waits for a place")
		}
		leave()
	})
}

// Otherwise, requests that were never sent would be given a place that was never freed.
func TestHeadThatLeavesTheQueueFreesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1)
		leave, _ := p.Take(t.Context())
		sent := false
		go func() {
			leave, _ := p.Take(t.Context())
			sent = true
			leave()
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, ok := p.Effort(nil).Take(ctx); ok { // the head of the repeated requests
			t.Error("there was a place")
		}
		synctest.Wait()
		if sent {
			t.Error("another was sent beside the one that has the only place")
		}
		leave()
		synctest.Wait()
		if !sent || p.free != 1 {
			t.Errorf("the place was left: another was sent: %t, and %d places are free", sent, p.free)
		}
	})
}
