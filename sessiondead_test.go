package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestNoSessionTakeoverBeforeTheDeadMark(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, holderWire := w.Client(lab.SharedConfig())
		w.Acquire(holder, "job")
		row := w.Sessions()[0]
		holderWire.SetFault(lab.Cut)
		waiter, wire := w.Client(lab.Config()) // one that renews its own locks one by one
		var marked bool
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Grants() && strings.Contains(string(r.Body), lab.Text(w.Item("job"), "recordVersionNumber")) {
				marked = lab.Text(w.Item(row), "dead") == "1"
			}
			return r.Send()
		})
		lock := w.Acquire(waiter, "job")
		if !marked {
			t.Error("taken over before the session was marked dead")
		}
		if _, ok := w.Item(row)["expiresAt"]; !ok {
			t.Error("nothing collects the dead session's row")
		}
		w.Release(lock)
	})
}

func TestASessionThatIsRenewedIsNeverMarkedDead(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, _ := w.Client(lab.SharedConfig())
		lock := w.Acquire(holder, "job")
		waiter, _ := w.Client(lab.Config())
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		_, err := waiter.Acquire(ctx, "job")
		if !errors.Is(err, leasehold.ErrHeld) || lock.Err() != nil {
			t.Errorf("after ten minutes: %v, the holder: %v", err, lock.Err())
		}
		w.Release(lock)
	})
}

func TestATryTakesOverADeadSessionThatItsClientWatched(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, wire := w.Client(lab.SharedConfig())
		w.Acquire(holder, "job")
		wire.SetFault(lab.Cut)
		c, _ := w.Client(lab.Config())
		if _, err := c.TryAcquire(t.Context(), "job"); !errors.Is(err, leasehold.ErrHeld) {
			t.Fatalf("first try: %v", err)
		}
		lab.Elapse(20 * time.Second)
		other, _ := w.Client(lab.Config()) // another process, which has watched nobody
		if _, err := other.TryAcquire(t.Context(), "job"); !errors.Is(err, leasehold.ErrHeld) {
			t.Fatalf("first try of another: %v", err)
		}
		lock, err := c.TryAcquire(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		w.Release(lock)
	})
}

func TestASessionRowThatIsGoneIsWatchedForALease(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, wire := w.Client(lab.SharedConfig())
		w.Acquire(holder, "job")
		wire.SetFault(lab.Cut)
		w.Delete(w.Sessions()[0])
		began := time.Now()
		c, _ := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		if took := time.Since(began); took < 20*time.Second || took > 22*time.Second {
			t.Errorf("taken over after %v", took)
		}
		w.Release(lock)
	})
}

func TestALockUnderASessionRowThatCannotBeReadIsTakenOverByNobody(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, _ := w.Client(lab.SharedConfig())
		lock := w.Acquire(holder, "job")
		row := w.Sessions()[0]
		whole := w.Item(row)
		w.Update(row, map[string]types.AttributeValue{"recordVersionNumber": lab.Num("1")})
		c, _ := w.Client(lab.Config())
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		for range 3 { // the second is told what the first has read
			if _, err := c.Acquire(ctx, "job"); !errors.Is(err, leasehold.ErrRecord) {
				t.Errorf("error %v", err)
			}
		}
		w.Put(whole)
		if err := lock.Err(); err != nil {
			t.Errorf("the holder: %v", err)
		}
		w.Release(lock)
	})
}

func TestASessionIsHonouredOnlyUnderItsOwner(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, _ := w.Client(lab.SharedConfig())
		w.Acquire(holder, "job")
		// A peer that carries unknown attributes forward into its own grant.
		w.Update("job", map[string]types.AttributeValue{"ownerName": lab.Str("java"), "recordVersionNumber": lab.Str("j1"), "leaseDuration": lab.Str("20000")})
		began := time.Now()
		c, _ := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		if took := time.Since(began); took < 20*time.Second || took > 22*time.Second {
			t.Errorf("taken over after %v: the session is the former holder's", took)
		}
		w.Release(lock)
		_ = holder.Close(t.Context())
	})
}

func TestAStaleSessionOfAnEarlierGrantIsNotHonoured(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		former, _ := w.Client(lab.SharedConfig())
		w.Release(w.Acquire(former, "job"))
		if err := former.Close(t.Context()); err != nil { // the session is dead, and its id still in the record
			t.Fatal(err)
		}
		holder, _ := w.Client(lab.Config())
		lock := w.Acquire(holder, "job")
		if lab.Text(w.Item("job"), "session") == "" {
			t.Fatal("nothing is left of the session: this test tests nothing")
		}
		c, _ := w.Client(lab.Config())
		if _, err := c.TryAcquire(t.Context(), "job"); !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("a lock that is held was granted: %v", err)
		}
		w.Release(lock)
	})
}

func TestASessionIsNotMarkedDeadWhoseNewVersionWasReadMeanwhile(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, _ := w.Client(lab.SharedConfig())
		lock := w.Acquire(holder, "job")
		c, wire := w.Client(lab.Config())
		if _, err := c.TryAcquire(t.Context(), "job"); !errors.Is(err, leasehold.ErrHeld) {
			t.Fatal(err)
		}
		wire.Sent()
		dead, err := leasehold.KillSession(t.Context(), c, strings.TrimPrefix(w.Sessions()[0], "leasehold/session/"))
		if dead || err != nil || len(wire.Sent()) != 0 {
			t.Errorf("dead: %v, %v", dead, err)
		}
		w.Release(lock)
		_ = holder.Close(t.Context())
	})
}

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
		c, waiterWire := w.Client(cfg)
		row := w.Sessions()[0]
		var version string  // of the session's row, as c has read it last
		var first time.Time // that c was shown that version
		waiterWire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Op == "GetItem" && strings.Contains(string(r.Body), row) {
				if shown := lab.Text(w.Item(row), "recordVersionNumber"); shown != version {
					version, first = shown, time.Now()
				}
			}
			return r.Send()
		})
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
		lock := <-waits
		// However long the pauses between two looks are: a lease after what was seen last.
		if took := time.Since(first); took != 20*time.Second {
			t.Errorf("a session that was watched all the time was dead %v after its last renewal was seen", took)
		}
		w.Release(lock)
		lab.Elapse(time.Minute) // until the last renewal that was cut off has ended
	})
}

func TestTheRowOfASessionIsBrokenOnlyAtTheVersionThatWasRead(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, wire := w.Client(lab.SharedConfig())
		lock := w.Acquire(holder, "job")
		row := w.Sessions()[0]
		read := func() leasehold.Record {
			item := w.Item(row)
			return leasehold.Record{
				Key: leasehold.Key{Partition: row}, Owner: lab.Text(item, "ownerName"),
				Grant: lab.Text(item, "grantId"), Version: lab.Text(item, "recordVersionNumber"),
			}
		}
		cfg := lab.Config()
		cfg.Retention = time.Hour // which is too short for a dead session's row
		c, _ := w.Client(cfg)
		before := read()
		lab.Elapse(20 * time.Second) // it is renewed
		if err := c.Break(t.Context(), before); !errors.Is(err, leasehold.ErrChanged) || lock.Err() != nil || w.Item(row)["dead"] != nil {
			t.Fatalf("renewed since: %v, the holder: %v, %v", err, lock.Err(), w.Item(row))
		}
		wire.SetFault(lab.Cut)
		lab.Elapse(time.Minute)
		if err := c.Break(t.Context(), read()); err != nil {
			t.Fatal(err)
		}
		item := w.Item(row)
		if lab.Text(item, "dead") != "1" || item["isReleased"] != nil {
			t.Errorf("the row: %v", item)
		}
		if at, err := strconv.ParseInt(lab.Number(item, "expiresAt"), 10, 64); err != nil || time.Until(time.Unix(at, 0)) < 7*24*time.Hour-time.Second {
			t.Errorf("the row expires at %v, %v", at, err)
		}
		if err := c.Break(t.Context(), read()); !errors.Is(err, leasehold.ErrChanged) {
			t.Errorf("of a dead session: %v", err)
		}
		next, err := c.TryAcquire(t.Context(), "job")
		if err != nil {
			t.Fatalf("its lock is not free at once: %v", err)
		}
		w.Release(next)
	})
}
