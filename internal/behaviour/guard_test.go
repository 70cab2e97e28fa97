package behaviour_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestGuardConditionHoldsWhileGrantIsCurrent(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _, lock := w.Work().Holding(lab.Config())
		guard := lock.Guards()[0]
		lab.OK(t, w.Transact(lab.Note("a", "1"), guard))
		lab.Elapse(time.Minute) // let the lock be renewed several times
		lab.OK(t, w.Transact(lab.Note("a", "2"), guard))
		w.Release(lock)
		next := w.Acquire(c, "job")
		err := w.Transact(guard, lab.Note("a", "stale"))
		if told := lock.GuardError(err, 0); as[*leasehold.LostError](told) == nil || !errors.Is(told, leasehold.ErrReleased) {
			t.Errorf("guard: %v", told)
		}
		lab.OK(t, w.Transact(lab.Note("a", "3"), next.Guards()[0]))
		w.WantLog("1", "2", "3")
		w.Release(next)
	})
}

func TestFailedGuardEndsLock(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, _, lock := w.Work().Holding(lab.Config())
		w.Steal("job")
		failed := w.Transact(lab.Note("a", "stale"), lock.Guards()[0])
		err := lock.GuardError(failed, 1)
		if lost := as[*leasehold.LostError](err); lost == nil || lost.Reason != leasehold.LostReplaced || lost.By == nil || lost.By.Version != "theirs" || !errors.Is(err, failed) {
			t.Fatalf("guard: %v", err)
		}
		lab.WantErr(t, "cause of the lock's context", context.Cause(lock.Context()), leasehold.ErrLost)
	})
}

func TestGuardedReadSucceedsOnlyWhileGrantIsCurrent(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, wire, lock := w.Work().Holding(lab.Config())
		lab.OK(t, lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"), lab.Note("c", "2"))))
		wire.Sent()
		wire.Meter = &lab.Meter{}
		items, err := lock.Read(t.Context(), []types.TransactGetItem{lab.Get("c"), lab.Get("b"), lab.Get("a")})
		if err != nil || len(items) != 3 || lab.Log(items[0])[0] != "2" || items[1] != nil || lab.Log(items[2])[0] != "1" {
			t.Errorf("read %v: %v", items, err)
		}
		if used := wire.Meter.Reset(); len(wire.Sent()) != 1 || used != (lab.Units{Read: 8}) { // a transactional read costs two units for each item
			t.Errorf("used %+v", used)
		}
		w.Steal("job")
		lab.WantErr(t, "read", lab.ErrorOf(lock.Read(t.Context(), []types.TransactGetItem{lab.Get("a")})), leasehold.ErrLost)
		lab.WantErr(t, "cause of the lock's context", context.Cause(lock.Context()), leasehold.ErrLost)
	})
}

// The network may deliver a grant twice. The second copy may be applied after the grant was
// released and the key is free again. It then has a new token, which the guard of the first
// copy does not contain.
func TestOldGuardStillFailsAfterLateCopyOfGrantIsApplied(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		w.Work()
		a, wire := w.Client(lab.Config())
		var again func() (*http.Response, error)
		wire.SetFault(lab.Once(lab.Call.Grants, func(r *lab.Request) (*http.Response, error) {
			again = r.Send
			return r.Send()
		}))
		lock := w.Acquire(a, "job")
		guard := lock.Guards()[0]
		w.Release(lock)
		w.Release(holds(w, "job"))
		if res, err := again(); err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("the copy did not land: %v %v", res, err)
		}
		lab.WantFailed(t, "guard of the former grant", w.Transact(guard, lab.Note("log", "late")))
	})
}
