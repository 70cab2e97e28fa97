package hold_test

import (
	"context"
	"fmt"

	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestCommitsUnderSameLockRunOneAtATime(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, wire, lock := w.Work().Holding(lab.Config())
		var commits inFlight
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if !r.Commits() {
				return r.Send()
			}
			defer commits.enter()()
			return lab.Slow(time.Second)(r)
		})
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				lab.WantErr(t, "commit", lock.Commit(t.Context(), lab.Writes(lab.Note("a", fmt.Sprint(i)))), nil)
			})
		}
		wg.Wait()
		lab.Want(t, "commits at a time", commits.most, 1)
		lab.Want(t, "commits applied", len(w.Log("a")), 5)
		w.Release(lock)
	})
}

// Two groups contain the same locks in opposite orders, and wait for commits that end at the same
// time. If each group locked the mutexes in its own order, each would lock one, and wait forever
// for the other.
func TestCommitsOfOverlappingGroupsDoNotDeadlock(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Work().Client(lab.Config())
		xy := w.AcquireAll(c, leasehold.Keys("x", "y"))
		yx := lab.Must(c.AcquireAll(xy.Context(), leasehold.Keys("y", "x"), leasehold.Reentrant()))(t)
		wire.SetFault(lab.Slow(time.Second))
		ctx := w.Within(time.Minute)
		var wg sync.WaitGroup
		for i, commit := range []func(context.Context, []types.TransactWriteItem) error{
			xy.Locks()[0].Commit, xy.Locks()[1].Commit, xy.Commit, yx.Commit,
		} {
			wg.Go(func() {
				lab.WantErr(t, "commit", commit(ctx, lab.Writes(lab.Note(fmt.Sprint(i), "1"))), nil)
			})
			lab.Elapse(0)
		}
		wg.Wait()
		_ = yx.Release(t.Context())
		_ = xy.Release(t.Context())
	})
}

func TestReleaseWaitsForCommitInProgress(t *testing.T) {
	lab.Each(t, map[string]bool{"released": false, "handed over": true}, func(t *testing.T, w *lab.World, waiting bool) {
		c, wire, lock := w.Work().Holding(lab.Config())
		wire.SetFault(lab.Script(lab.ArriveAfter(2 * time.Second)))
		// The context of this call expires while its commit is in flight.
		lab.WantErr(t, "commit", lock.Commit(w.Within(time.Second), lab.Writes(lab.Note("a", "1"))), leasehold.ErrUnknownOutcome)
		next := make(chan *leasehold.Lock, 1)
		if waiting {
			go func() { next <- w.Acquire(c, "job") }()
		}
		began := time.Now()
		w.Release(lock)
		lab.WantTook(t, "released after", began, time.Second, 5*time.Second)
		w.WantLog("1")
		if waiting {
			w.Release(<-next)
		}
	})
}

func TestCommitThatWaitsForOtherCommitFailsWhenLockIsReleased(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, wire, lock := w.Work().Holding(lab.Config())
		wire.SetFault(lab.Once(lab.Call.Commits, lab.Slow(2*time.Second)))
		var wg sync.WaitGroup
		wg.Go(func() { _ = lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"))) })
		lab.Elapse(0)
		wg.Go(func() {
			began := time.Now()
			lab.WantErr(t, "waiting commit", lock.Commit(t.Context(), lab.Writes(lab.Note("a", "2"))), leasehold.ErrReleased)
			lab.Want(t, "returned after", time.Since(began), time.Second)
		})
		lab.Elapse(time.Second)
		w.Release(lock)
		wg.Wait()
		w.WantLog("1")
	})
}

func TestReleaseFreesKeyDespiteUnansweredCommit(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, wire, lock := w.Work().Holding(lab.Config())
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Commits() && !w.IsReleased("job") {
				return lab.Cut(r)
			}
			return r.Send()
		})
		result := lab.Go(func() error { return lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"))) })
		lab.Elapse(time.Second)
		_ = lock.Release(w.Within(10 * time.Second))
		lab.Elapse(5 * time.Second)
		w.WantReleased("job")
		lab.WantErr(t, "commit", <-result, leasehold.ErrLost, leasehold.ErrReleased)
		w.WantLog()
	})
}

func TestRenewalDoesNotWaitLongForCommitInProgress(t *testing.T) {
	lab.Each(t, map[string]struct{ commit, wait time.Duration }{
		"short commit": {time.Second, time.Second},
		"long commit":  {3 * time.Second, 2 * time.Second}, // the lock is still trusted for 8 s, and the renewal waits for a quarter of that
	}, func(t *testing.T, w *lab.World, tc struct{ commit, wait time.Duration }) {
		_, wire, lock := w.Work().Holding(lab.Config(), leasehold.WithoutRenewal())
		lab.Elapse(10 * time.Second)
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Commits() {
				time.Sleep(tc.commit - time.Millisecond)
			}
			return r.Send()
		})
		done := lab.Go(func() error { return lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"))) })
		began := time.Now()
		lab.WantErr(t, "renew", lock.Renew(t.Context()), nil)
		lab.WantTook(t, "the renewal waited", began, tc.wait-5*time.Millisecond, tc.wait+5*time.Millisecond)
		lab.WantErr(t, "commit", <-done, nil)
		w.Release(lock)
	})
}

func TestCommitSucceedsDespiteConcurrentRenewal(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, wire, lock := w.Work().Holding(lab.Config())
		wire.SetFault(lab.Script(func(r *lab.Request) (*http.Response, error) {
			go func() { _ = lock.Renew(context.Background()) }()
			time.Sleep(100 * time.Millisecond)
			version := lab.Text(w.Item("job"), "recordVersionNumber")
			w.Update("job", map[string]types.AttributeValue{"recordVersionNumber": lab.Str(version + "-renewed")})
			defer w.Update("job", map[string]types.AttributeValue{"recordVersionNumber": lab.Str(version)})
			return r.Send()
		}))
		lab.WantErr(t, "commit", lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"))), nil)
		lab.Elapse(time.Minute)
		w.Release(lock)
	})
}

func TestCloseDoesNotWaitForUnansweredCommit(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire, lock := w.Work().Holding(lab.Config())
		wire.SetFault(lab.On(lab.Call.Commits, lab.Cut))
		result := lab.Go(func() error { return lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"))) })
		lab.Elapse(time.Second)
		began := time.Now()
		lab.WantErr(t, "close", c.Close(t.Context()), nil)
		lab.WantTook(t, "closed after", began, 0, 3*time.Second)
		lab.WantErr(t, "commit", <-result, leasehold.ErrUnknownOutcome, leasehold.ErrClosed)
	})
}
