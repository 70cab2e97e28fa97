package hold_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestCommitArrivingAfterSessionEndedIsNotApplied(t *testing.T) {
	for name, commit := range map[string]func(ctx context.Context, h held) error{
		"Commit":           func(ctx context.Context, h held) error { return h.Commit(ctx, noted("late")) },
		"CommitAndRelease": func(ctx context.Context, h held) error { return h.CommitAndRelease(ctx, noted("late")) },
	} {
		for how, free := range map[string]func(c *leasehold.Client, w *lab.World){
			"Close":       func(c *leasehold.Client, w *lab.World) { _ = c.Close(w.T.Context()) },
			"marked dead": func(_ *leasehold.Client, w *lab.World) { w.MarkDead(w.Sessions()[0]) },
			"deleted":     func(_ *leasehold.Client, w *lab.World) { w.Delete(w.Sessions()[0]) },
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				lab.Each(t, lockOrGroup, func(t *testing.T, w *lab.World, acquire func(*lab.World, *leasehold.Client) held) {
					c, wire := w.Work().Client(lab.SharedConfig())
					lock := acquire(w, c)
					wire.SetFault(lab.Script(lab.Delayed(10*time.Second), lab.Cut)) // the first request of the commit arrives only after the key was freed
					done := lab.Go(func() error { return commit(t.Context(), lock) })
					lab.Elapse(time.Millisecond)
					free(c, w)
					lab.WantFailed(t, "commit", <-done)
					lab.Elapse(20 * time.Second)
					w.WantLog()
					_ = c.Close(t.Context())
				})
			})
		}
	}
}

func TestCommitUnderDeadSessionCancelsContextsOfAllLocksOfSession(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Work().Client(lab.SharedConfig())
		lock, other := w.Acquire(c, "job"), w.Acquire(c, "other")
		w.MarkDead(w.Sessions()[0])
		var lost *leasehold.LostError
		if err := lock.Commit(t.Context(), lab.Writes(lab.Note("a", "late"))); !errors.As(err, &lost) || lost.Reason != leasehold.LostBroken || lost.Key != lock.Key() {
			t.Errorf("commit: %v", err)
		}
		for _, l := range []*leasehold.Lock{lock, other} {
			select {
			case <-l.Context().Done():
			default:
				t.Errorf("%v is still trusted", l.Key())
			}
		}
		w.WantLog()
		lab.WantErr(t, "commit under the next session", w.Acquire(c, "job").Commit(t.Context(), lab.Writes(lab.Note("a", "1"))), nil)
		_ = c.Close(t.Context())
	})
}

func TestGuardedReadUnderSharedLeaseChecksSession(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Work().Client(lab.SharedConfig())
		lock, other := w.Acquire(c, "job"), w.Acquire(c, "other")
		lab.OK(t, lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"))))
		items, err := lock.Read(t.Context(), []types.TransactGetItem{lab.Get("a")})
		if err != nil || len(items) != 1 || lab.Log(items[0])[0] != "1" {
			t.Errorf("read %v: %v", items, err)
		}
		w.MarkDead(w.Sessions()[0])
		lab.WantErr(t, "read", lab.ErrorOf(lock.Read(t.Context(), nil)), leasehold.ErrLost)
		lab.WantErr(t, "other lock", other.Err(), leasehold.ErrLost)
		_ = c.Close(t.Context())
	})
}

func TestFailedCommitReturnsErrLostIfSessionIsDead(t *testing.T) {
	// The first request of the commit is delayed, and gets no reply. The second fails because the
	// condition of the caller's write is false. The third has only the guards, and the same
	// idempotency token. So DynamoDB does not apply the first when it arrives.
	lab.Each(t, map[string]bool{"session current": false, "session dead": true}, func(t *testing.T, w *lab.World, dead bool) {
		c, wire, lock := w.Work().Holding(lab.SharedConfig())
		wire.SetFault(lab.Script(lab.Delayed(10*time.Second), nil, func(r *lab.Request) (*http.Response, error) {
			lab.Want(t, "guards that use up the token", len(r.Parts()), 2)
			if dead {
				w.MarkDead(w.Sessions()[0])
			}
			return r.Send()
		}))
		err := lock.Commit(t.Context(), lab.Writes(lab.NoteIf("a", "1")))
		var failed *leasehold.CommitError
		if dead && !errors.Is(err, leasehold.ErrLost) || !dead && (!errors.As(err, &failed) || len(failed.Reasons) != 1 || lock.Err() != nil) {
			t.Errorf("commit: %v, Err of the lock: %v", err, lock.Err())
		}
		w.Open("a")
		lab.Elapse(20 * time.Second)
		w.WantLog()
		_ = c.Close(t.Context())
	})
}

func TestCommitOfGroupContainsOnlyOneCheckOfSession(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Work().Client(lab.SharedConfig())
		group := w.AcquireAll(c, leasehold.Keys("a", "b", "c"))
		lab.Want(t, "guards of three locks", len(group.Guards()), 4)
		most := make([]types.TransactWriteItem, 96)
		for i := range most {
			most[i] = lab.Note(fmt.Sprint("item/", i), "1")
		}
		lab.WantErr(t, "96 writes", group.Commit(t.Context(), most), nil)
		wire.Sent()
		lab.WantText(t, "97 writes", group.Commit(t.Context(), slices.Concat(most, lab.Writes(lab.Note("a", "1")))), "at most 96")
		lock := group.Locks()[0]
		own := lab.Note("a", "1")
		own.Update.TableName, own.Update.Key = new(string), lab.Key(w.Sessions()[0])
		*own.Update.TableName = "locks"
		lab.WantText(t, "a write to the session's row", lock.Commit(t.Context(), lab.Writes(own)), "shared lease")
		lab.Want(t, "requests for a commit that cannot succeed", len(wire.Sent()), 0)
		_ = c.Close(t.Context())
	})
}

func TestGuardsOfLockSucceedOnlyIfItsSessionIsAlive(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		plain, _ := w.Work().Client(lab.Config())
		own := w.Acquire(plain, "own")
		lab.Want(t, "guards of a lock with its own lease", len(own.Guards()), 1)
		w.Release(own)
		c, _ := w.Client(lab.SharedConfig())
		lock, other := w.Acquire(c, "job"), w.Acquire(c, "other")
		guards := lock.Guards()
		lab.WantErr(t, "guarded write", w.Transact(append(guards, lab.Note("a", "1"))...), nil)
		lab.Want(t, "guards", len(guards), 2)
		lab.Elapse(time.Minute) // let the session be renewed
		lab.OK(t, w.Transact(append(guards, lab.Note("a", "2"))...))
		w.MarkDead(w.Sessions()[0])
		err := w.Transact(append(guards, lab.Note("a", "late"))...)
		lab.WantFailed(t, "guarded write under a dead session", err)
		var lost *leasehold.LostError
		if told := lock.GuardError(err, 0); !errors.As(told, &lost) || lost.Key != lock.Key() || lost.Reason != leasehold.LostBroken || !errors.Is(told, err) {
			t.Errorf("error of the session's guard: %v", told)
		}
		lab.WantErr(t, "lock", lock.Err(), leasehold.ErrLost)
		lab.WantErr(t, "other lock", other.Err(), leasehold.ErrLost)
		w.WantLog("1", "2")
		_ = c.Close(t.Context())
	})
}

func TestMethodGuardErrorIgnoresFailedGuardOfAnotherLock(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Work().Client(lab.SharedConfig())
		lock, other := w.Acquire(c, "job"), w.Acquire(c, "other")
		w.Steal("other")
		err := w.Transact(lock.Guards()[0], other.Guards()[0])
		if told := lock.GuardError(err, 1); told != err || lock.Err() != nil { //nolint:errorlint // no errors.Is here: GuardError returns err itself
			t.Errorf("the index of the other lock ended this lock: %v", told)
		}
		lab.WantErr(t, "other lock", other.GuardError(err, 1), leasehold.ErrLost)
		_ = c.Close(t.Context())
	})
}

func TestConcurrentCommitsUnderSharedLeaseDoNotConflict(t *testing.T) {
	const locks = 200
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Work().Client(lab.SharedConfig())
		held := w.AcquireMany(c, "lock", locks)
		wire.Sent()
		var requests inFlight
		renewed, longest := time.Now(), time.Duration(0)
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Commits() || r.RenewsSession() {
				defer requests.enter()()
				if r.RenewsSession() {
					longest, renewed = max(longest, time.Since(renewed)), time.Now()
				}
				time.Sleep(10 * time.Millisecond)
			}
			return r.Send()
		})
		began := time.Now()
		var wg sync.WaitGroup
		for _, lock := range held {
			wg.Go(func() {
				for range 10 {
					lab.WantErr(t, "commit", lock.Commit(t.Context(), lab.Writes(lab.Note(lock.Key().Partition, "1"))), nil)
				}
			})
		}
		wg.Wait()
		// Two thousand commits of 10 ms each are sent one after the other, because they all check
		// the row of the session. A renewal of the session waits only for a few commits.
		lab.WantRange(t, "longest time between renewals of the session", longest, 1, 5050*time.Millisecond)
		lab.Want(t, "requests at a time for the session's row", requests.most, 1)
		lab.WantTook(t, "all applied after", began, 0, 21*time.Second)
		_ = c.Close(t.Context())
	})
}

// isStuck reports whether the request is a commit that writes the item "stuck".
func isStuck(c lab.Call) bool { return c.Commits() && strings.Contains(string(c.Body), `"stuck"`) }

func TestHangingCommitDoesNotBlockOtherCommits(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Work().Client(lab.SharedConfig())
		lock, other := w.Acquire(c, "job"), w.Acquire(c, "other")
		wire.SetFault(lab.On(isStuck, lab.Cut))
		ctx, cancel := context.WithCancel(t.Context())
		done := lab.Go(func() error { return lock.Commit(ctx, lab.Writes(lab.Note("stuck", "1"))) })
		began := time.Now()
		lab.WantErr(t, "commit", other.Commit(t.Context(), lab.Writes(lab.Note("a", "1"))), nil)
		lab.WantTook(t, "committed after", began, 0, time.Second)
		cancel()
		<-done
		lab.Elapse(5 * time.Second)
		_ = c.Close(t.Context())
	})
}

func TestCancelledCommitDoesNotDelayOtherCommits(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Work().Client(lab.SharedConfig())
		lock, leaver, other := w.Acquire(c, "job"), w.Acquire(c, "leaver"), w.Acquire(c, "other")
		wire.SetFault(lab.Once(isStuck, lab.Cut))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() { _ = lock.Commit(ctx, lab.Writes(lab.Note("stuck", "1"))) })
		synctest.Wait()
		brief := w.Within(100 * time.Millisecond)
		wg.Go(func() { _ = leaver.Commit(brief, lab.Writes(lab.Note("left", "1"))) })
		lab.Elapse(time.Second) // after this second, neither of the two commits delays later commits of the session
		began := time.Now()
		lab.WantErr(t, "commit", other.Commit(ctx, lab.Writes(lab.Note("a", "1"))), nil)
		lab.Want(t, "committed after", time.Since(began), 0)
		cancel()
		wg.Wait()
		lab.Elapse(5 * time.Second)
		_ = c.Close(t.Context())
	})
}

func TestCloseWaitsForCommitUnderSharedLease(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire, lock := w.Work().Holding(lab.SharedConfig())
		wire.SetFault(lab.Script(lab.ArriveAfter(1500 * time.Millisecond)))
		done := lab.Go(func() error { return lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"))) })
		lab.Elapse(time.Millisecond)
		lab.WantErr(t, "close", c.Close(t.Context()), nil)
		lab.WantErr(t, "commit", <-done, nil)
		w.WantLog("1")
	})
}
