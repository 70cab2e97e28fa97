package liveness_test

import (
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
		// The waiter has no session of its own: it must read the session of the holder.
		waiter, wire := w.Client(lab.Config())
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

func TestTryAcquireContinuesSessionObservationOfEarlierCall(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, wire := w.Client(lab.SharedConfig())
		w.Acquire(holder, "job")
		wire.SetFault(lab.Cut)
		c, _ := w.Client(lab.Config())
		lab.WantErr(t, "first try", lab.ErrorOf(c.TryAcquire(t.Context(), "job", leasehold.NoWaitEvenIfDead())), leasehold.ErrHeld)
		lab.Elapse(20 * time.Second)
		other, _ := w.Client(lab.Config()) // a new client: it must observe the session for a whole lease
		lab.WantErr(t, "first try of another client", lab.ErrorOf(other.TryAcquire(t.Context(), "job", leasehold.NoWaitEvenIfDead())), leasehold.ErrHeld)
		lock := lab.Must(c.TryAcquire(t.Context(), "job", leasehold.NoWaitEvenIfDead()))(t)
		w.Release(lock)
	})
}

func TestSessionIsIgnoredIfAnotherOwnerHoldsLock(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, _ := w.Client(lab.SharedConfig())
		w.Acquire(holder, "job")
		// The Java client does not know sessions. Its grant keeps the attribute with the
		// former holder's session in the record.
		w.Update("job", map[string]types.AttributeValue{"ownerName": lab.Str("java"), "recordVersionNumber": lab.Str("j1"), "leaseDuration": lab.Str("20000")})
		began := time.Now()
		_, _, lock := w.Holding(lab.Config())
		lab.WantTook(t, "taken over after", began, 20*time.Second, 22*time.Second)
		w.Release(lock)
		_ = holder.Close(t.Context())
	})
}

func TestSessionOfEarlierGrantIsIgnored(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		former, _ := w.Client(lab.SharedConfig())
		w.Release(w.Acquire(former, "job"))
		if err := former.Close(t.Context()); err != nil { // the session has ended, but the record still contains its id
			t.Fatal(err)
		}
		_, _, lock := w.Holding(lab.Config())
		if lab.Text(w.Item("job"), "session") == "" {
			t.Fatal("nothing is left of the session: this test tests nothing")
		}
		c, _ := w.Client(lab.Config())
		lab.WantErr(t, "try of a held key", lab.ErrorOf(c.TryAcquire(t.Context(), "job")), leasehold.ErrHeld)
		w.Release(lock)
	})
}
