package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
)

// markDead marks a session dead as another client does that has watched it.
func (w *world) markDead(row string) {
	w.t.Helper()
	w.update(row, map[string]types.AttributeValue{"dead": str("1"), "recordVersionNumber": str("v")})
}

func TestACommitUnderASharedLeaseDoesNotLandOnceItsSessionHasFreedTheLock(t *testing.T) {
	commit := func(ctx context.Context, c *leasehold.Client, w *world) func() error {
		lock := w.acquire(c, "job")
		return func() error { return lock.Commit(ctx, writes(note("a", "late"))) }
	}
	for name, begin := range map[string]func(context.Context, *leasehold.Client, *world) func() error{
		"Commit": commit,
		"CommitAndRelease": func(ctx context.Context, c *leasehold.Client, w *world) func() error {
			lock := w.acquire(c, "job")
			return func() error { return lock.CommitAndRelease(ctx, writes(note("a", "late"))) }
		},
		"Group.Commit": func(ctx context.Context, c *leasehold.Client, w *world) func() error {
			group, err := c.AcquireAll(ctx, leasehold.Keys("job", "other"))
			if err != nil {
				w.t.Fatal(err)
			}
			return func() error { return group.Commit(ctx, writes(note("a", "late"))) }
		},
		"Group.CommitAndRelease": func(ctx context.Context, c *leasehold.Client, w *world) func() error {
			group, err := c.AcquireAll(ctx, leasehold.Keys("job", "other"))
			if err != nil {
				w.t.Fatal(err)
			}
			return func() error { return group.CommitAndRelease(ctx, writes(note("a", "late"))) }
		},
	} {
		for how, free := range map[string]func(c *leasehold.Client, w *world){
			"Close":       func(c *leasehold.Client, w *world) { _ = c.Close(w.t.Context()) },
			"marked dead": func(_ *leasehold.Client, w *world) { w.markDead(w.sessions()[0]) },
			"deleted":     func(_ *leasehold.Client, w *world) { w.delete(w.sessions()[0]) },
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				inBubble(t, func(t *testing.T, w *world) {
					c, wire := w.work().client(sharedConfig())
					run := begin(t.Context(), c, w)
					wire.setFault(script(delayed(10*time.Second), hangs)) // it arrives when the lock is free
					done := make(chan error, 1)
					go func() { done <- run() }()
					elapse(time.Millisecond)
					free(c, w)
					if err := <-done; err == nil {
						t.Error("committed")
					}
					elapse(20 * time.Second)
					w.wantLog()
					_ = c.Close(t.Context())
				})
			})
		}
	}
}

func TestACommitWhoseSessionIsDeadEndsEveryLockOfIt(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.work().client(sharedConfig())
		lock, other := w.acquire(c, "job"), w.acquire(c, "other")
		w.markDead(w.sessions()[0])
		var lost *leasehold.LostError
		if err := lock.Commit(t.Context(), writes(note("a", "late"))); !errors.As(err, &lost) || lost.Reason != leasehold.LostBroken || lost.Key != lock.Key() {
			t.Errorf("commit: %v", err)
		}
		for _, l := range []*leasehold.Lock{lock, other} {
			select {
			case <-l.Context().Done():
			default:
				t.Errorf("%v is believed in", l.Key())
			}
		}
		w.wantLog()
		if err := w.acquire(c, "job").Commit(t.Context(), writes(note("a", "1"))); err != nil {
			t.Errorf("commit under the next session: %v", err)
		}
		_ = c.Close(t.Context())
	})
}

func TestAReadUnderASharedLeaseSeesItsSessionStanding(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.work().client(sharedConfig())
		lock, other := w.acquire(c, "job"), w.acquire(c, "other")
		if err := lock.Commit(t.Context(), writes(note("a", "1"))); err != nil {
			t.Fatal(err)
		}
		items, err := lock.Read(t.Context(), []types.TransactGetItem{get("a")})
		if err != nil || len(items) != 1 || logOf(items[0])[0] != "1" {
			t.Errorf("read %v: %v", items, err)
		}
		w.markDead(w.sessions()[0])
		if _, err := lock.Read(t.Context(), nil); !errors.Is(err, leasehold.ErrLost) || !errors.Is(other.Err(), leasehold.ErrLost) {
			t.Errorf("read: %v, the other lock: %v", err, other.Err())
		}
		_ = c.Close(t.Context())
	})
}

func TestATokenIsVoidedUnderTheGuardOfTheSessionToo(t *testing.T) {
	// A write fails behind an unanswered request: the guards alone are sent.
	for name, dead := range map[string]bool{"it stands": false, "it is dead": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				c, wire := w.work().client(sharedConfig())
				lock := w.acquire(c, "job")
				wire.setFault(script(delayed(10*time.Second), nil, func(_ context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
					if n := len(c.parts()); n != 2 {
						t.Errorf("the token is voided under %d guards", n)
					}
					if dead {
						w.markDead(w.sessions()[0])
					}
					return next()
				}))
				err := lock.Commit(t.Context(), writes(noteIf("a", "1")))
				var failed *leasehold.CommitError
				if dead && !errors.Is(err, leasehold.ErrLost) || !dead && (!errors.As(err, &failed) || len(failed.Reasons) != 1 || lock.Err() != nil) {
					t.Errorf("commit: %v, lock: %v", err, lock.Err())
				}
				w.open("a")
				elapse(20 * time.Second)
				w.wantLog()
				_ = c.Close(t.Context())
			})
		})
	}
}

func TestTheSessionOfAGroupIsCheckedOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.work().client(sharedConfig())
		group, err := c.AcquireAll(t.Context(), leasehold.Keys("a", "b", "c"))
		if err != nil {
			t.Fatal(err)
		}
		if n := len(group.Guards()); n != 4 {
			t.Errorf("%d guards of three locks", n)
		}
		most := make([]types.TransactWriteItem, 96)
		for i := range most {
			most[i] = note(fmt.Sprint("item/", i), "1")
		}
		if err := group.Commit(t.Context(), most); err != nil {
			t.Errorf("96 writes: %v", err)
		}
		wire.sent()
		if err := group.Commit(t.Context(), slices.Concat(most, writes(note("a", "1")))); err == nil || !strings.Contains(err.Error(), "at most 96") {
			t.Errorf("97 writes: %v", err)
		}
		lock := group.Locks()[0]
		own := note("a", "1")
		own.Update.TableName, own.Update.Key = new(string), keyItem(w.sessions()[0])
		*own.Update.TableName = "locks"
		if err := lock.Commit(t.Context(), writes(own)); err == nil || !strings.Contains(err.Error(), "shared lease") {
			t.Errorf("a write to the session's row: %v", err)
		}
		if n := len(wire.sent()); n != 0 {
			t.Errorf("%d requests for what can never land", n)
		}
		_ = c.Close(t.Context())
	})
}

func TestGuardsHoldWhileTheirGrantAndItsSessionStand(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		plain, _ := w.work().client(config())
		own := w.acquire(plain, "own")
		if n := len(own.Guards()); n != 1 {
			t.Errorf("%d guards of a lock with a lease of its own", n)
		}
		w.release(own)
		c, _ := w.client(sharedConfig())
		lock, other := w.acquire(c, "job"), w.acquire(c, "other")
		guards := lock.Guards()
		if err := w.transact(append(guards, note("a", "1"))...); err != nil || len(guards) != 2 {
			t.Fatalf("%d guards: %v", len(guards), err)
		}
		elapse(time.Minute) // of renewals
		if err := w.transact(append(guards, note("a", "2"))...); err != nil {
			t.Fatal(err)
		}
		w.markDead(w.sessions()[0])
		err := w.transact(append(guards, note("a", "late"))...)
		if err == nil {
			t.Fatal("the guards hold although the session is dead")
		}
		if told := lock.GuardError(err, 0); told != err || lock.Err() != nil { //nolint:errorlint // it is the error itself
			t.Errorf("told of the guard that held: %v", told)
		}
		var lost *leasehold.LostError
		if told := lock.GuardError(err, 1); !errors.As(told, &lost) || lost.Key != lock.Key() || lost.Reason != leasehold.LostBroken || !errors.Is(told, err) {
			t.Errorf("told of the session's: %v", told)
		}
		if lock.Err() == nil || other.Err() == nil {
			t.Errorf("believed in: %v, %v", lock.Err(), other.Err())
		}
		w.wantLog("1", "2")
		_ = c.Close(t.Context())
	})
}

func TestTheGuardOfAnotherLockEndsNone(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.work().client(sharedConfig())
		lock, other := w.acquire(c, "job"), w.acquire(c, "other")
		w.steal("other")
		err := w.transact(lock.Guard(), other.Guard())
		if told := lock.GuardError(err, 1); told != err || lock.Err() != nil { //nolint:errorlint // as above
			t.Errorf("an index that is not its own ended the lock: %v", told)
		}
		if told := other.GuardError(err, 1); !errors.Is(told, leasehold.ErrLost) {
			t.Errorf("the other: %v", told)
		}
		_ = c.Close(t.Context())
	})
}

func TestCommitsUnderASharedLeaseDoNotConflictWithEachOther(t *testing.T) {
	const locks = 200
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.work().client(sharedConfig())
		held := make([]*leasehold.Lock, locks)
		for i := range held {
			held[i] = w.acquire(c, fmt.Sprint("lock/", i))
		}
		wire.sent()
		var mu sync.Mutex
		now, most := 0, 0
		renewed, longest := time.Now(), time.Duration(0)
		wire.setFault(func(_ context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
			if c.commits() || c.renewsSession() {
				mu.Lock()
				now++
				most = max(most, now)
				if c.renewsSession() {
					longest, renewed = max(longest, time.Since(renewed)), time.Now()
				}
				mu.Unlock()
				defer func() {
					mu.Lock()
					defer mu.Unlock()
					now--
				}()
				time.Sleep(10 * time.Millisecond)
			}
			return next()
		})
		began := time.Now()
		var wg sync.WaitGroup
		for _, lock := range held {
			wg.Go(func() {
				for range 10 {
					if err := lock.Commit(t.Context(), writes(note(lock.Key().Partition, "1"))); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		// Two thousand of 10 ms, and the session's renewals, which do not queue.
		if longest == 0 || longest > 5050*time.Millisecond {
			t.Errorf("the session was renewed %v after the renewal before", longest)
		}
		if took := time.Since(began); most != 1 || took > 21*time.Second {
			t.Errorf("%d requests at once for the session's row, all done after %v", most, took)
		}
		_ = c.Close(t.Context())
	})
}

func TestACommitThatHangsDoesNotHoldUpThoseOfOtherLocks(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.work().client(sharedConfig())
		lock, other := w.acquire(c, "job"), w.acquire(c, "other")
		wire.setFault(func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
			if c.commits() && strings.Contains(string(c.body), `"stuck"`) {
				return hang(ctx)
			}
			return next()
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- lock.Commit(ctx, writes(note("stuck", "1"))) }()
		elapse(0)
		began := time.Now()
		if err := other.Commit(t.Context(), writes(note("a", "1"))); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("committed after %v", took)
		}
		cancel()
		<-done
		elapse(5 * time.Second)
		_ = c.Close(t.Context())
	})
}

func TestARenewalOfASessionThatMeetsATransactionIsRepeatedAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(sharedConfig())
		lock := w.acquire(c, "job")
		var conflicted time.Time
		var waited time.Duration
		wire.setFault(func(_ context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
			switch {
			case c.renewsSession() && conflicted.IsZero():
				conflicted = time.Now()
				return conflict(c), nil
			case c.renewsSession() && waited == 0:
				waited = time.Since(conflicted) + 1
			}
			return next()
		})
		elapse(20 * time.Second)
		if waited != 1 {
			t.Errorf("repeated after %v", waited-1)
		}
		if err := lock.Err(); err != nil {
			t.Error(err)
		}
		_ = c.Close(t.Context())
	})
}

func TestCloseWaitsForACommitOfASharedLease(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.work().client(sharedConfig())
		lock := w.acquire(c, "job")
		wire.setFault(script(func(_ context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
			time.Sleep(1500 * time.Millisecond)
			return next()
		}))
		done := make(chan error, 1)
		go func() { done <- lock.Commit(t.Context(), writes(note("a", "1"))) }()
		elapse(time.Millisecond)
		if err := c.Close(t.Context()); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("commit: %v", err)
		}
		w.wantLog("1")
	})
}
