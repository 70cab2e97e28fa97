package rwlock_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestAWaitingWriterKeepsNewReadersOut(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, b, c := newReadWriter(w, "set"), newReadWriter(w, "set"), newReadWriter(w, "set")
		r := a.read()
		writer := begin(t.Context(), b.l.AcquireWrite)
		lab.Elapse(time.Minute) // its intent is renewed
		reader := begin(t.Context(), c.l.AcquireRead)
		lab.Elapse(time.Minute)
		if reader.granted() != nil || writer.granted() != nil {
			t.Fatal("granted beside a reader and a writer that waits")
		}
		if _, err := a.l.AcquireRead(t.Context(), leasehold.NoWait()); !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("a try to read while a writer waits: %v", err)
		}
		w.Release(r)
		wr := writer.within(t, 2*time.Second)
		if w.Item("set")["intent"] != nil {
			t.Error("a writer that was granted intends still")
		}
		lab.Elapse(time.Minute)
		if reader.granted() != nil {
			t.Fatal("a reader was granted beside the writer")
		}
		w.Release(wr)
		w.Release(reader.within(t, 2*time.Second))
	})
}

func TestAWriterThatGivesUpLetsReadersIn(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, b := newReadWriter(w, "set"), newReadWriter(w, "set")
		r := a.read()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var held *leasehold.HeldError
		if _, err := b.l.AcquireWrite(ctx); !errors.As(err, &held) || held.Holder.Grant != r.Record().Grant {
			t.Errorf("a writer whose wait has ended: %v", err)
		}
		lab.Elapse(time.Second)
		if w.Item("set")["intent"] != nil {
			t.Error("the intent of a writer that gave up is there still")
		}
		w.Release(b.read(leasehold.NoWait()))
		w.Release(r)
	})
}

func TestADeadWritersIntentKeepsReadersOutForOneLease(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, b, c := newReadWriter(w, "set"), newReadWriter(w, "set"), newReadWriter(w, "set")
		r := a.read()
		begin(t.Context(), b.l.AcquireWrite)
		lab.Elapse(10 * time.Second)
		b.wire.SetFault(lab.Cut)
		lab.Elapse(4 * time.Second)
		began := time.Now()
		second := begin(t.Context(), c.l.AcquireRead).within(t, time.Minute)
		if waited := time.Since(began); waited < 20*time.Second-6*time.Second || waited > 22*time.Second {
			t.Errorf("granted %v after a writer that died while it waited, lease 20s", waited)
		}
		w.Release(r)
		w.Release(second)
	})
}

func TestAWriterLetsReadersGoFirstByLookingNotByWriting(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, b := newReadWriter(w, "set"), newReadWriter(w, "set")
		lock := a.write()
		lab.Elapse(10 * time.Second)
		writer := begin(t.Context(), b.l.AcquireWrite)
		lab.Elapse(10 * time.Second)
		w.Release(lock)
		released := time.Now()
		next := writer.within(t, 5*time.Second)
		// One and a half times PollMax is the longest pause of a reader.
		if waited := time.Since(released); waited < 750*time.Millisecond || waited > 3*time.Second {
			t.Errorf("granted %v after the writer before, readers may pause for 750ms", waited)
		}
		writes := 0
		for _, c := range b.wire.Sent() {
			if c.Op == "UpdateItem" {
				writes++
			}
		}
		if writes > 3 { // the first, perhaps one that met what had just changed, and the grant
			t.Errorf("%d writes to be granted", writes)
		}
		w.Release(next)
	})
}

func TestAReaderBehindAWaitingWriterLooksNoMoreOftenThanBehindAHolder(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		var waiting []leasehold.Event
		a, b, c := newReadWriter(w, "set"), newReadWriter(w, "set"), newReadWriter(w, "set", func(cfg *leasehold.Config) {
			cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
				if e.Kind == leasehold.EventWaiting {
					waiting = append(waiting, e)
				}
			}
		})
		r := a.read()
		writer := begin(t.Context(), b.l.AcquireWrite)
		lab.Elapse(time.Second)
		reader := begin(t.Context(), c.l.AcquireRead)
		lab.Elapse(5 * time.Second)
		c.wire.Sent()
		lab.Elapse(5 * time.Minute)
		if n := len(c.wire.Sent()); n > 5*60*2*5/4 { // a look in half a second, and a quarter for chance
			t.Errorf("%d looks in 5 minutes", n)
		}
		if len(waiting) != 1 {
			t.Errorf("%d events say that it waits for the intent", len(waiting))
		}
		w.Release(r)
		wr := writer.within(t, 2*time.Second)
		lab.Elapse(5 * time.Second)
		if n := len(waiting); n != 2 || waiting[1].Holder.Grant != wr.Record().Grant {
			t.Errorf("%d events, the last %+v: the writer holds now", n, waiting[n-1].Holder)
		}
		w.Release(wr)
		w.Release(reader.within(t, 2*time.Second))
	})
}

func TestAReaderThatWatchedAnIntentForLongComesBeforeASecondWriter(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		inside, waiting := newReadWriter(w, "set"), newReadWriter(w, "set")
		writers := []*readWriter{newReadWriter(w, "set"), newReadWriter(w, "set"), newReadWriter(w, "set")}
		for range 20 {
			r := inside.read()
			var written atomic.Int64
			var all []*begun
			for _, p := range writers {
				all = append(all, begin(t.Context(), p.l.AcquireWrite))
			}
			lab.Elapse(5 * time.Second)
			reader := begin(t.Context(), waiting.l.AcquireRead)
			lab.Elapse(5 * time.Second)
			w.Release(r)
			for _, b := range all {
				go func() {
					lock := <-b.lock
					written.Add(1)
					time.Sleep(10 * time.Millisecond)
					w.Release(lock)
				}()
			}
			got := reader.within(t, 10*time.Second)
			if before := written.Load(); before > 1 {
				t.Errorf("%d writers came before a reader that had waited behind an intent", before)
			}
			w.Release(got)
			lab.Elapse(10 * time.Second)
		}
	})
}

func TestAnIntentWhoseReplyWasLostIsWithdrawnByAWriterThatGivesUp(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, b := newReadWriter(w, "set"), newReadWriter(w, "set")
		r := a.read()
		b.wire.SetFault(lab.Once(func(c lab.Call) bool { return updates(c) && !c.Grants() }, lab.LoseReply))
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, _ = b.l.AcquireWrite(ctx)
		lab.Elapse(100 * time.Millisecond)
		if w.Item("set")["intent"] != nil {
			t.Error("the intent is there still")
		}
		w.Release(r)
	})
}

func TestAnIntentThatLandsAfterItsWriterKeepsItsClientOutNotAtAll(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, b := newReadWriter(w, "set"), newReadWriter(w, "set")
		r := a.read()
		var late func() (*http.Response, error)
		b.wire.SetFault(lab.Once(func(c lab.Call) bool { return updates(c) && !c.Grants() }, func(req *lab.Request) (*http.Response, error) {
			late = req.Send
			w.Release(r)
			return nil, lab.ErrReset
		}))
		w.Release(b.write())
		_, _ = late()
		if w.Item("set")["intent"] == nil {
			t.Fatal("not what this test is about")
		}
		w.Release(b.read(leasehold.NoWait()))
	})
}
