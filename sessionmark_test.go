package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
)

func TestASessionIsNotMarkedDeadThatWasRenewedSinceItWasRead(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		holder, _ := w.client(sharedConfig())
		lock := w.acquire(holder, "job")
		row := w.sessions()[0]
		// The waiter reads the session's row once, and next when by that reading
		// the session is dead: what it sends then is the mark.
		waiter, wire := w.client(patient(config()))
		marks := 0
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		refused := make(chan error, 1)
		go func() {
			stolen, err := waiter.Acquire(ctx, "job")
			if err == nil {
				_ = stolen.Release(context.Background())
			}
			refused <- err
		}()
		elapse(time.Millisecond)
		read := textOf(w.item(row), "recordVersionNumber")
		elapse(19 * time.Second)
		if textOf(w.item(row), "recordVersionNumber") == read {
			t.Fatal("not renewed since: this test tests nothing")
		}
		wire.sent()
		elapse(3 * time.Second) // a lease after it was read
		for _, c := range wire.sent() {
			if c.op == "UpdateItem" && strings.Contains(string(c.body), "leasehold/session/") {
				marks++
				if !strings.Contains(string(c.body), read) {
					t.Errorf("the mark does not name the version that was read: %s", c.body)
				}
			}
		}
		if marks != 1 {
			t.Errorf("%d marks were sent: this test tests nothing", marks)
		}
		if textOf(w.item(row), "dead") != "" {
			t.Error("a session was marked dead that is renewed")
		}
		if err := <-refused; !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("two hold the lock: %v", err)
		}
		if err := lock.Err(); err != nil {
			t.Error(err)
		}
		w.release(lock)
		_ = holder.Close(t.Context())
	})
}

func TestALockThatJoinsASessionWhichHasEndedEndsUnasked(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		cfg := sharedConfig()
		cfg.Lease = 4 * time.Second
		told := 0
		cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
			if e.Kind == leasehold.EventLost && e.Key.Partition == "job" {
				told++
			}
		}
		c, wire := w.client(cfg)
		w.acquire(c, "other")
		wire.setFault(once(call.grants, slow(2900*time.Millisecond)))
		w.delete(w.sessions()[0]) // the session's next renewal comes before the grant's reply
		warned := make(chan struct{}, 1)
		// Nobody asks the lock: asking looks at the session.
		w.acquire(c, "job", leasehold.WithExpiryWarning(time.Second, func(*leasehold.Lock) { warned <- struct{}{} }))
		elapse(0)
		if told != 1 || len(warned) != 1 {
			t.Errorf("its loss was told of %d times, with %d warnings", told, len(warned))
		}
		for _, held := range c.Held() {
			if held.Key().Partition == "job" {
				t.Error("the client holds a lock of a session that has ended")
			}
		}
		_ = c.Close(t.Context())
	})
}

func TestSessionsThatNobodyAsksForAreForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		lasting, wire := w.client(sharedConfig())
		w.acquire(lasting, "lasting")
		cfg := config()
		cfg.PollMin, cfg.PollMax = 5*time.Second, 5*time.Second
		c, _ := w.client(cfg)
		waits := make(chan *leasehold.Lock, 1)
		go func() { waits <- w.acquire(c, "lasting") }()
		most := 0
		for i := range 300 { // clients come and go
			key := fmt.Sprint("job/", i)
			other, _ := w.client(sharedConfig())
			w.acquire(other, key)
			if err := other.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.release(w.acquire(c, key)) // of a session that is dead
			most = max(most, leasehold.WatchedSessions(c))
			elapse(time.Minute)
		}
		if most > 150 {
			t.Errorf("%d sessions are remembered", most)
		}
		wire.setFault(cut)
		began := time.Now()
		lock := <-waits
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("a session that was watched all the time was dead after %v", took)
		}
		w.release(lock)
	})
}
