package behaviour_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestCommitSendsOnlyOneRequest(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire, events := logged(w.Work(), lab.Config())
		wire.Meter = &lab.Meter{}
		lock := w.Acquire(c, "job")
		wire.Sent()
		wire.Meter.Reset()
		lab.OK(t, lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"))))
		if sent := wire.Sent(); len(sent) != 1 || !sent[0].Commits() {
			t.Errorf("sent %v", sent)
		}
		// Each write of a transaction costs two write units. The guard counts as a write.
		lab.Want(t, "used", wire.Meter.Reset(), lab.Units{Write: 4})
		if told := events.of(leasehold.EventCommitted); len(told) != 1 || told[0].Err != nil || told[0].Requests != 1 || told[0].Token != lock.Token() {
			t.Errorf("events %+v", told)
		}
		w.WantLog("1")
		w.Release(lock)
	})
}

func TestCommitWithoutWritesChecksThatGrantIsCurrent(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		lock := holds(w, "job")
		lab.OK(t, lock.Commit(t.Context(), nil))
		w.Steal("job")
		lab.WantErr(t, "after the lock was lost", lock.Commit(t.Context(), nil), leasehold.ErrLost)
	})
}

func TestCommitWritesNothingAfterLockIsLost(t *testing.T) {
	type row struct {
		by     func(w *lab.World)
		reason leasehold.LostReason
		shown  bool
	}
	lab.Each(t, map[string]row{
		"granted to another client": {func(w *lab.World) { w.Steal("job") }, leasehold.LostReplaced, true},
		"broken": {func(w *lab.World) {
			w.Update("job", map[string]types.AttributeValue{"isReleased": lab.Str("1")})
		}, leasehold.LostBroken, true},
		"deleted":            {func(w *lab.World) { w.Delete("job") }, leasehold.LostBroken, false},
		"with another token": {func(w *lab.World) { w.Update("job", map[string]types.AttributeValue{"fencingToken": lab.Num("5")}) }, leasehold.LostBroken, true},
		"with another owner": {func(w *lab.World) {
			w.Update("job", map[string]types.AttributeValue{"ownerName": lab.Str("a peer")})
		}, leasehold.LostReplaced, true},
	}, func(t *testing.T, w *lab.World, end row) {
		_, wire, lock := w.Work().Holding(lab.Config())
		end.by(w)
		wire.Sent()
		err := lock.Commit(t.Context(), lab.Writes(lab.Note("a", "stale")))
		if sent := wire.Sent(); end.shown && len(sent) != 1 {
			t.Errorf("the rejection shows the record, but %v was sent", sent)
		}
		if lost := as[*leasehold.LostError](err); lost == nil || lost.Reason != end.reason || (lost.By != nil) != end.shown {
			t.Errorf("commit: %v", err)
		}
		if cancelled := (*types.TransactionCanceledException)(nil); !errors.As(err, &cancelled) {
			t.Errorf("%v does not wrap the error of the transaction", err)
		}
		lab.WantErr(t, "cause of the lock's context", context.Cause(lock.Context()), leasehold.ErrLost)
		w.WantLog()
	})
}

func TestCommitThatDetectsLossOfLockWakesNextWaiter(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _, events := logged(w.Work(), lab.Config())
		lock := w.Acquire(c, "job")
		next := w.Queue(c, "job")
		w.Delete("job")
		began := time.Now()
		lab.WantErr(t, "commit", lock.Commit(t.Context(), lab.Writes(lab.Note("a", "stale"))), leasehold.ErrLost)
		heir := <-next
		lab.Want(t, "losses reported", len(events.of(leasehold.EventLost)), 1)
		lab.Want(t, "next holder waited", time.Since(began), 0)
		w.Release(heir)
	})
}

func TestDelayedCommitWritesNothingAfterNextGrant(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, wire, lock := w.Work().Holding(lab.Config())
		ctx := w.Within(time.Second)
		wire.SetFault(lab.Script(lab.Delayed(time.Minute), lab.Cut, lab.Cut))
		lab.WantErr(t, "commit", lock.Commit(ctx, lab.Writes(lab.Note("a", "stale"))), leasehold.ErrUnknownOutcome)
		w.Release(lock)
		next := holds(w, "job")
		lab.Elapse(2 * time.Minute)
		w.WantLog()
		w.Release(next)
	})
}

func TestCommitWithFailedWriteLeavesLockHeld(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, wire, lock := w.Work().Holding(lab.Config())
		lab.OK(t, lock.Commit(t.Context(), lab.Writes(lab.Note("b", "x"))))
		wire.Sent()
		err := lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"), lab.NoteIf("b", "2"), lab.NoteIf("c", "3")))
		var failed *leasehold.CommitError
		if !errors.As(err, &failed) || len(failed.Reasons) != 3 || aws.ToString(failed.Reasons[0].Code) != "None" ||
			aws.ToString(failed.Reasons[1].Code) != "ConditionalCheckFailed" || len(lab.Log(failed.Reasons[1].Item)) != 1 {
			t.Fatalf("commit: %#v", err)
		}
		if text := err.Error(); !strings.Contains(text, " write 1: ConditionalCheckFailed (") || !strings.Contains(text, "); write 2: ConditionalCheckFailed (") || strings.HasSuffix(text, ";") {
			t.Errorf("message %q", err)
		}
		if errors.Is(err, leasehold.ErrLost) || errors.Is(err, leasehold.ErrUnknownOutcome) || lock.Err() != nil {
			t.Errorf("commit: %v, lock: %v", err, lock.Err())
		}
		wantSent(t, wire, 1)
		w.WantLog()
		w.Release(lock)
	})
}

func TestCommitUsesNewIdempotencyTokenForEachCall(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, wire, lock := w.Work().Holding(lab.Config())
		wire.Sent()
		for range 2 {
			lab.OK(t, lock.Commit(t.Context(), lab.Writes(lab.Note("a", "same"))))
		}
		w.WantLog("same", "same")
		w.Release(lock)
	})
}

func TestCommitToMissingTableReturnsErrTableNotFound(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config()) // this test does not create the table to which the commit writes
		lock := w.Acquire(c, "job")
		wire.Sent()
		err := lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1")))
		if op := as[*leasehold.OpError](err); op == nil || op.Op != "commit" || !errors.Is(err, leasehold.ErrTableNotFound) || errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("commit: %v", err)
		}
		lab.Want(t, "requests", len(wire.Sent()), 1)
		lab.WantErr(t, "lock", lock.Err(), nil)
		w.Release(lock)
	})
}

func TestCommitAndReadUnderReleasedOrLostLockSendNothing(t *testing.T) {
	type row struct {
		by   func(w *lab.World, c *leasehold.Client, lock *leasehold.Lock)
		want error
	}
	lab.Each(t, map[string]row{
		"released": {func(w *lab.World, _ *leasehold.Client, lock *leasehold.Lock) { w.Release(lock) }, leasehold.ErrReleased},
		"detached": {func(_ *lab.World, _ *leasehold.Client, lock *leasehold.Lock) { _, _ = lock.Detach() }, leasehold.ErrReleased},
		"expired":  {func(*lab.World, *leasehold.Client, *leasehold.Lock) { lab.Elapse(19 * time.Second) }, leasehold.ErrLost},
		"closed":   {func(w *lab.World, c *leasehold.Client, _ *leasehold.Lock) { _ = c.Close(w.T.Context()) }, leasehold.ErrClosed},
	}, func(t *testing.T, w *lab.World, over row) {
		c, wire, lock := w.Work().Holding(lab.Config(), leasehold.WithoutRenewal())
		over.by(w, c, lock)
		wire.Sent()
		lab.WantErr(t, "commit", lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"))), over.want)
		lab.WantErr(t, "read", lab.ErrorOf(lock.Read(t.Context(), nil)), over.want)
		wantSent(t, wire, 0)
	})
}

func TestCommitAndReleaseSendsOnlyOneRequest(t *testing.T) {
	type row struct {
		opts    []leasehold.ReleaseOption
		deleted bool
		data    string
	}
	lab.Each(t, map[string]row{
		"kept":      {nil, false, "before"},
		"with data": {[]leasehold.ReleaseOption{leasehold.WithData([]byte("after"))}, false, "after"},
		"deleted":   {[]leasehold.ReleaseOption{leasehold.DeleteOnRelease(true)}, true, ""},
	}, func(t *testing.T, w *lab.World, tc row) {
		c, wire, events := logged(w.Work(), lab.Config())
		lock := w.Acquire(c, "job", leasehold.WithData([]byte("before")))
		wire.Sent()
		wire.SetFault(lab.Once(lab.Call.Commits, func(r *lab.Request) (*http.Response, error) {
			lab.WantErr(t, "when it was sent", lock.Err(), leasehold.ErrReleased)
			return r.Send()
		}))
		lab.OK(t, lock.CommitAndRelease(t.Context(), lab.Writes(lab.Note("a", "1")), tc.opts...))
		if sent := wire.Sent(); len(sent) != 1 || !sent[0].Commits() {
			t.Errorf("sent %v", sent)
		}
		w.WantLog("1")
		item := w.Item("job")
		if tc.deleted != (item == nil) || !tc.deleted && lab.Text(item, "isReleased") != "1" {
			t.Errorf("the record is %v", item)
		}
		if data, ok := item["data"].(*types.AttributeValueMemberB); ok && string(data.Value) != tc.data {
			t.Errorf("data %q", data.Value)
		}
		lab.Want(t, "events", events.kinds()[1:], []leasehold.EventKind{leasehold.EventCommitted, leasehold.EventReleased})
		w.Release(lock) // the second Release of a lock succeeds
		lab.WantErr(t, "a second CommitAndRelease", lock.CommitAndRelease(t.Context(), nil), leasehold.ErrReleased)
		wantSent(t, wire, 0)
	})
}

func TestCommitAndReleaseFreesKeyEvenIfWritesFail(t *testing.T) {
	failed := func(err error) bool {
		var failed *leasehold.CommitError
		return errors.As(err, &failed) && len(failed.Reasons) == 1
	}
	denied := lab.Refused("AccessDeniedException")
	type row struct {
		faults []lab.Fault
		check  func(error) bool
	}
	lab.Each(t, map[string]row{
		"a write failed":                      {nil, failed},
		"a write failed after a lost request": {[]lab.Fault{lab.Delayed(time.Minute)}, failed},
		"refused": {[]lab.Fault{denied}, func(err error) bool {
			var op *leasehold.OpError
			return errors.As(err, &op) && op.Op == "commit"
		}},
		"unknown": {[]lab.Fault{lab.Delayed(time.Minute), denied}, func(err error) bool {
			return errors.Is(err, leasehold.ErrUnknownOutcome)
		}},
	}, func(t *testing.T, w *lab.World, tc row) {
		_, wire, lock := w.Work().Holding(lab.Config())
		wire.SetFault(lab.Script(tc.faults...))
		err := lock.CommitAndRelease(t.Context(), lab.Writes(lab.NoteIf("a", "late")))
		if !tc.check(err) || errors.Is(err, leasehold.ErrLost) {
			t.Errorf("commit: %v", err)
		}
		w.WantReleased("job")
		w.Release(lock) // the second Release of a lock succeeds
		w.Open("a")
		lab.Elapse(2 * time.Minute)
		w.WantLog()
	})
}

func TestTransactionWithGuardSucceedsOnlyWhileGrantIsCurrent(t *testing.T) {
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

func TestGuardErrorMarksLockAsLostIfGuardHasFailed(t *testing.T) {
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

func TestReadUnderLockSucceedsOnlyWhileGrantIsCurrent(t *testing.T) {
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

// The network may deliver the request of a grant twice. DynamoDB may apply the second copy
// after the release, when the key is free again. The copy then writes a new token, which
// the guard of the released grant does not contain.
func TestTransactionWithOldGuardFailsEvenIfGrantIsAppliedTwice(t *testing.T) {
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
			t.Fatalf("the copy was not applied: %v %v", res, err)
		}
		lab.WantFailed(t, "transaction with the guard of the first grant", w.Transact(guard, lab.Note("log", "late")))
	})
}
