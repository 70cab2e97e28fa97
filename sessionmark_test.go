package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestASessionIsNotMarkedDeadThatWasRenewedSinceItWasRead(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, _ := w.Client(lab.SharedConfig())
		lock := w.Acquire(holder, "job")
		row := w.Sessions()[0]
		// The waiter reads the session's row once, and next when by that reading
		// the session is dead: what it sends then is the mark.
		waiter, wire := w.Client(patient(lab.Config()))
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
		lab.Elapse(time.Millisecond)
		read := lab.Text(w.Item(row), "recordVersionNumber")
		lab.Elapse(19 * time.Second)
		if lab.Text(w.Item(row), "recordVersionNumber") == read {
			t.Fatal("not renewed since: this test tests nothing")
		}
		wire.Sent()
		lab.Elapse(3 * time.Second) // a lease after it was read
		for _, c := range wire.Sent() {
			if c.Op == "UpdateItem" && strings.Contains(string(c.Body), "leasehold/session/") {
				marks++
				if !strings.Contains(string(c.Body), read) {
					t.Errorf("the mark does not name the version that was read: %s", c.Body)
				}
			}
		}
		if marks != 1 {
			t.Errorf("%d marks were sent: this test tests nothing", marks)
		}
		if lab.Text(w.Item(row), "dead") != "" {
			t.Error("a session was marked dead that is renewed")
		}
		if err := <-refused; !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("two hold the lock: %v", err)
		}
		if err := lock.Err(); err != nil {
			t.Error(err)
		}
		w.Release(lock)
		_ = holder.Close(t.Context())
	})
}

func TestALockThatJoinsASessionWhichHasEndedEndsUnasked(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := lab.SharedConfig()
		cfg.Lease = 4 * time.Second
		told := 0
		cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
			if e.Kind == leasehold.EventLost && e.Key.Partition == "job" {
				told++
			}
		}
		c, wire := w.Client(cfg)
		w.Acquire(c, "other")
		wire.SetFault(lab.Once(lab.Call.Grants, lab.Slow(2900*time.Millisecond)))
		w.Delete(w.Sessions()[0]) // the session's next renewal comes before the grant's reply
		warned := make(chan struct{}, 1)
		// Nobody asks the lock: asking looks at the session.
		w.Acquire(c, "job", leasehold.WithExpiryWarning(time.Second, func(*leasehold.Lock) { warned <- struct{}{} }))
		lab.Elapse(0)
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
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		lasting, wire := w.Client(lab.SharedConfig())
		w.Acquire(lasting, "lasting")
		cfg := lab.Config()
		cfg.PollMin, cfg.PollMax = 5*time.Second, 5*time.Second
		c, _ := w.Client(cfg)
		waits := make(chan *leasehold.Lock, 1)
		go func() { waits <- w.Acquire(c, "lasting") }()
		most := 0
		for i := range 300 { // clients come and go
			key := fmt.Sprint("job/", i)
			other, _ := w.Client(lab.SharedConfig())
			w.Acquire(other, key)
			if err := other.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.Release(w.Acquire(c, key)) // of a session that is dead
			most = max(most, leasehold.WatchedSessions(c))
			lab.Elapse(time.Minute)
		}
		if most > 150 {
			t.Errorf("%d sessions are remembered", most)
		}
		wire.SetFault(lab.Cut)
		began := time.Now()
		lock := <-waits
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("a session that was watched all the time was dead after %v", took)
		}
		w.Release(lock)
	})
}
