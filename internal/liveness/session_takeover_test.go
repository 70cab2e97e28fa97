package liveness_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestLockIsTakenOverAfterSessionIsMarkedDead(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, holderWire := w.Client(lab.SharedConfig())
		w.Acquire(holder, "job")
		row := w.Sessions()[0]
		holderWire.SetFault(lab.Cut)
		waiter, wire := w.Client(lab.Config()) // a client without a shared lease
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

func TestTryTakesOverDeadSessionObservedByEarlierTry(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, wire := w.Client(lab.SharedConfig())
		w.Acquire(holder, "job")
		wire.SetFault(lab.Cut)
		c, _ := w.Client(lab.Config())
		if _, err := c.TryAcquire(t.Context(), "job", leasehold.NoWaitEvenIfDead()); !errors.Is(err, leasehold.ErrHeld) {
			t.Fatalf("first try: %v", err)
		}
		lab.Elapse(20 * time.Second)
		other, _ := w.Client(lab.Config()) // another process, which has observed no holder
		if _, err := other.TryAcquire(t.Context(), "job", leasehold.NoWaitEvenIfDead()); !errors.Is(err, leasehold.ErrHeld) {
			t.Fatalf("first try of another: %v", err)
		}
		lock, err := c.TryAcquire(t.Context(), "job", leasehold.NoWaitEvenIfDead())
		if err != nil {
			t.Fatal(err)
		}
		w.Release(lock)
	})
}

func TestSessionIsIgnoredIfAnotherOwnerHoldsLock(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, _ := w.Client(lab.SharedConfig())
		w.Acquire(holder, "job")
		// A peer's grant keeps attributes that the peer does not know.
		w.Update("job", map[string]types.AttributeValue{"ownerName": lab.Str("java"), "recordVersionNumber": lab.Str("j1"), "leaseDuration": lab.Str("20000")})
		began := time.Now()
		_, _, lock := w.Holding(lab.Config())
		if took := time.Since(began); took < 20*time.Second || took > 22*time.Second {
			t.Errorf("taken over after %v: the session is the former holder's", took)
		}
		w.Release(lock)
		_ = holder.Close(t.Context())
	})
}

func TestSessionOfEarlierGrantIsIgnored(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		former, _ := w.Client(lab.SharedConfig())
		w.Release(w.Acquire(former, "job"))
		if err := former.Close(t.Context()); err != nil { // the session is dead, but its id is still in the record
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
