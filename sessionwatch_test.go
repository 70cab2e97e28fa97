package leasehold_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
)

func TestNoSessionTakeoverBeforeTheDeadMark(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		holder, holderWire := w.client(sharedConfig())
		w.acquire(holder, "job")
		row := w.sessions()[0]
		holderWire.setFault(cut)
		waiter, wire := w.client(config()) // one that renews its own locks one by one
		var marked bool
		wire.setFault(func(_ context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
			if c.grants() && strings.Contains(string(c.body), textOf(w.item("job"), "recordVersionNumber")) {
				marked = textOf(w.item(row), "dead") == "1"
			}
			return next()
		})
		lock := w.acquire(waiter, "job")
		if !marked {
			t.Error("taken over before the session was marked dead")
		}
		if _, ok := w.item(row)["expiresAt"]; !ok {
			t.Error("nothing collects the dead session's row")
		}
		w.release(lock)
	})
}

func TestASessionThatIsRenewedIsNeverMarkedDead(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		holder, _ := w.client(sharedConfig())
		lock := w.acquire(holder, "job")
		waiter, _ := w.client(config())
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		_, err := waiter.Acquire(ctx, "job")
		if !errors.Is(err, leasehold.ErrHeld) || lock.Err() != nil {
			t.Errorf("after ten minutes: %v, the holder: %v", err, lock.Err())
		}
		w.release(lock)
	})
}

func TestATryTakesOverADeadSessionThatItsClientWatched(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		holder, wire := w.client(sharedConfig())
		w.acquire(holder, "job")
		wire.setFault(cut)
		c, _ := w.client(config())
		_, err := c.TryAcquire(t.Context(), "job")
		var held *leasehold.HeldError
		if !errors.As(err, &held) || !strings.HasPrefix(held.Observation.Key.Partition, "leasehold/session/") || held.Observation.Lease != 20*time.Second {
			t.Fatalf("first try: %v, observed %+v", err, held.Observation)
		}
		elapse(20 * time.Second)
		other, _ := w.client(config()) // another process, which was told
		if err := other.ImportObservations(0, leasehold.BootObservation(other, held.Observation, 20*time.Second)); err != nil {
			t.Fatal(err)
		}
		lock, err := other.TryAcquire(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		w.release(lock)
	})
}

func TestASessionRowThatIsGoneIsWatchedForALease(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		holder, wire := w.client(sharedConfig())
		w.acquire(holder, "job")
		wire.setFault(cut)
		w.delete(w.sessions()[0])
		began := time.Now()
		c, _ := w.client(config())
		lock := w.acquire(c, "job")
		if took := time.Since(began); took < 20*time.Second || took > 22*time.Second {
			t.Errorf("taken over after %v", took)
		}
		w.release(lock)
	})
}

func TestASessionIsHonouredOnlyUnderItsOwner(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		holder, _ := w.client(sharedConfig())
		w.acquire(holder, "job")
		// A peer that carries unknown attributes forward into its own grant.
		w.update("job", map[string]types.AttributeValue{"ownerName": str("java"), "recordVersionNumber": str("j1"), "leaseDuration": str("20000")})
		began := time.Now()
		c, _ := w.client(config())
		lock := w.acquire(c, "job")
		if took := time.Since(began); took < 20*time.Second || took > 22*time.Second {
			t.Errorf("taken over after %v: the session is the former holder's", took)
		}
		w.release(lock)
		_ = holder.Close(t.Context())
	})
}

func TestAStaleSessionOfAnEarlierGrantIsNotHonoured(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		former, _ := w.client(sharedConfig())
		w.release(w.acquire(former, "job"))
		if err := former.Close(t.Context()); err != nil { // the session is dead, and its id still in the record
			t.Fatal(err)
		}
		holder, _ := w.client(config())
		lock := w.acquire(holder, "job")
		if textOf(w.item("job"), "session") == "" {
			t.Fatal("nothing is left of the session: this test tests nothing")
		}
		c, _ := w.client(config())
		if _, err := c.TryAcquire(t.Context(), "job"); !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("a lock that is held was granted: %v", err)
		}
		w.release(lock)
	})
}

func TestASessionIsNotMarkedDeadWhoseNewVersionWasReadMeanwhile(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		holder, _ := w.client(sharedConfig())
		lock := w.acquire(holder, "job")
		c, wire := w.client(config())
		if _, err := c.TryAcquire(t.Context(), "job"); !errors.Is(err, leasehold.ErrHeld) {
			t.Fatal(err)
		}
		wire.sent()
		dead, err := leasehold.KillSession(t.Context(), c, strings.TrimPrefix(w.sessions()[0], "leasehold/session/"))
		if dead || err != nil || len(wire.sent()) != 0 {
			t.Errorf("dead: %v, %v", dead, err)
		}
		w.release(lock)
		_ = holder.Close(t.Context())
	})
}
