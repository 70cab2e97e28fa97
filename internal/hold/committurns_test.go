package hold_test

import (
	"context"
	"errors"
	"fmt"

	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestCommitsOfSameLockRunOneAtATime(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, wire, lock := w.Work().Holding(lab.Config())
		var mu sync.Mutex
		now, most := 0, 0
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if !r.Commits() {
				return r.Send()
			}
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				now--
			}()
			return lab.Slow(time.Second)(r)
		})
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				lab.WantErr(t, "commit", lock.Commit(t.Context(), lab.Writes(lab.Note("a", fmt.Sprint(i)))), nil)
			})
		}
		wg.Wait()
		if most != 1 || len(w.Log("a")) != 5 {
			t.Errorf("%d commits at once, %d landed", most, len(w.Log("a")))
		}
		w.Release(lock)
	})
}

// The groups name the same locks in opposite orders, and the commits for which they wait
// end at the same time. If the commit of a group took its locks in the group's order, each
// group would have one lock and wait for the other for ever.
func TestCommitsOfOverlappingGroupsDoNotDeadlock(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Work().Client(lab.Config())
		xy := w.AcquireAll(c, leasehold.Keys("x", "y"))
		yx, err := c.AcquireAll(xy.Context(), leasehold.Keys("y", "x"), leasehold.Reentrant())
		if err != nil {
			t.Fatal(err)
		}
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
		// The caller of this commit leaves while the commit is in flight.
		lab.WantErr(t, "commit", lock.Commit(w.Within(time.Second), lab.Writes(lab.Note("a", "1"))), leasehold.ErrUnknownOutcome)
		next := make(chan *leasehold.Lock, 1)
		if waiting {
			go func() { next <- w.Acquire(c, "job") }()
		}
		began := time.Now()
		w.Release(lock)
		if took := time.Since(began); took < time.Second {
			t.Errorf("released after %v", took)
		}
		w.WantLog("1")
		if waiting {
			w.Release(<-next)
		}
	})
}

func TestQueuedCommitFailsWhenLockIsReleased(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, wire, lock := w.Work().Holding(lab.Config())
		wire.SetFault(lab.Once(lab.Call.Commits, lab.Slow(2*time.Second)))
		var wg sync.WaitGroup
		wg.Go(func() { _ = lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"))) })
		lab.Elapse(0)
		wg.Go(func() {
			began := time.Now()
			if err := lock.Commit(t.Context(), lab.Writes(lab.Note("a", "2"))); !errors.Is(err, leasehold.ErrReleased) || time.Since(began) != time.Second {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
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
		if !w.IsReleased("job") {
			t.Error("the key is not free")
		}
		if err := <-result; !errors.Is(err, leasehold.ErrLost) || !errors.Is(err, leasehold.ErrReleased) {
			t.Errorf("commit: %v", err)
		}
		w.WantLog()
	})
}

func TestRenewalWaitsForCommitAtMostQuarterOfRemainingTrust(t *testing.T) {
	lab.Each(t, map[string]struct{ commit, wait time.Duration }{
		"a short one": {time.Second, time.Second},
		"a long one":  {3 * time.Second, 2 * time.Second}, // a quarter of the 8 s for which the lock is still trusted
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
		if took := time.Since(began); (took - tc.wait).Abs() > 5*time.Millisecond {
			t.Errorf("the renewal waited %v, want %v", took, tc.wait)
		}
		lab.WantErr(t, "done", <-done, nil)
		w.Release(lock)
	})
}

func TestRenewalDuringCommitDoesNotFailCommit(t *testing.T) {
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
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("closed after %v", took)
		}
		if err := <-result; !errors.Is(err, leasehold.ErrUnknownOutcome) || !errors.Is(err, leasehold.ErrClosed) {
			t.Errorf("commit: %v", err)
		}
	})
}
