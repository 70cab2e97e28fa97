package behaviour_test

import (
	"context"
	"errors"
	"math"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestLockIsReleasedNoMatterHowWorkEnds(t *testing.T) {
	failed := errors.New("failed")
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire) {
		free := func() {
			t.Helper()
			synctest.Wait()
			w.WantReleased("job")
		}
		do := func(fn func(ctx context.Context, l *leasehold.Lock) error) error { return c.Do(t.Context(), "job", fn) }

		for _, want := range []error{nil, failed} {
			err := do(func(context.Context, *leasehold.Lock) error { return want })
			if !errors.Is(err, want) || errors.Is(err, leasehold.ErrNotRun) {
				t.Errorf("work that returns %v: %v", want, err)
			}
			free()
		}
		exited := make(chan struct{})
		go func() {
			defer close(exited)
			_ = do(func(context.Context, *leasehold.Lock) error { runtime.Goexit(); return nil })
		}()
		<-exited
		free()

		err := do(func(ctx context.Context, l *leasehold.Lock) error {
			w.Update("job", map[string]types.AttributeValue{"recordVersionNumber": lab.Str("x"), "isReleased": lab.Str("1")})
			<-ctx.Done()
			return failed
		})
		lab.WantErr(t, "lost", err, failed, leasehold.ErrLost)

		lock := holds(w, "job")
		ran := false
		err = c.Do(t.Context(), "job", func(context.Context, *leasehold.Lock) error { ran = true; return nil }, leasehold.NoWait())
		if ran || !errors.Is(err, leasehold.ErrNotRun) || !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("held: %v", err)
		}
		w.Release(lock)

		lab.WantErr(t, "do without a network for the release", do(func(context.Context, *leasehold.Lock) error { wire.SetFault(lab.Cut); return nil }), nil)
		wire.SetFault(nil)
	})
}

func TestDoRenewsLeaseUntilFunctionReturns(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
		ctx, cancel := context.WithCancel(t.Context())
		err := c.Do(ctx, "job", func(ctx context.Context, l *leasehold.Lock) error {
			cancel()
			<-ctx.Done()
			time.Sleep(time.Minute) // the function returns only a minute after its context has ended
			lab.WantErr(t, "lock while the function runs", l.Err(), nil)
			return nil
		})
		lab.WantErr(t, "do", err, nil)
		w.WantReleased("job")
	})
}

func TestTrustedUntilIsNotInFutureAfterReleaseOrLoss(t *testing.T) {
	lab.Each(t, map[string]func(w *lab.World, c *leasehold.Client, lock *leasehold.Lock){
		"released":      func(w *lab.World, _ *leasehold.Client, lock *leasehold.Lock) { w.Release(lock) },
		"detached":      func(w *lab.World, _ *leasehold.Client, lock *leasehold.Lock) { w.Detach(lock) },
		"client closed": func(w *lab.World, c *leasehold.Client, _ *leasehold.Lock) { closes(w, c) },
		"granted to another client": func(w *lab.World, _ *leasehold.Client, lock *leasehold.Lock) {
			w.Steal("job")
			lab.WantErr(w.T, "commit", lock.Commit(w.T.Context(), nil), leasehold.ErrLost)
		},
		"other handle is left": func(w *lab.World, c *leasehold.Client, lock *leasehold.Lock) {
			other := share(w, c, lock)
			w.Release(lock)
			lab.Want(w.T, "trust of the other handle", time.Until(other.TrustedUntil()), 17*time.Second)
			w.Release(other)
		},
	}, func(t *testing.T, w *lab.World, end func(w *lab.World, c *leasehold.Client, lock *leasehold.Lock)) {
		c, _, lock := w.Holding(lab.Config())
		lab.Elapse(time.Second)
		end(w, c, lock)
		if left := time.Until(lock.TrustedUntil()); lock.Err() == nil || left > 0 {
			t.Errorf("Err is %v, and the lock is trusted for %v", lock.Err(), left)
		}
	})
}

func TestTrustedUntilIsNotLaterIfProcessPausesWhileReadingClocks(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		var pause time.Duration
		c, _ := w.Client(lab.Config(), lab.Wall(func() time.Time {
			time.Sleep(pause)
			return time.Now()
		}))
		lock := w.Acquire(c, "job", leasehold.WithoutRenewal())
		until := lock.TrustedUntil()
		pause = 3 * time.Second
		lab.Want(t, "trusted later by", lock.TrustedUntil().Sub(until), 0)
		pause = 0
		w.Release(lock)
	})
}

func TestHolderCountsLeaseFromRequestRatherThanFromReply(t *testing.T) { // python_dynamodb_lock counts the lease from the reply instead, so its holder trusts the lock for too long
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire) {
		is := func(what string, sent time.Time, lock *leasehold.Lock) {
			t.Helper()
			lab.Want(t, "trusted after a slow "+what, lock.TrustedUntil().Sub(sent), 18*time.Second)
		}
		wire.SetFault(lab.Once(lab.Call.Grants, lab.Slow(2*time.Second)))
		sent := time.Now()
		lock := w.Acquire(c, "job", leasehold.WithoutRenewal())
		is("grant", sent, lock)
		wire.SetFault(lab.Once(lab.Call.Renews, lab.Slow(time.Second)))
		sent = time.Now()
		renew(w, lock)
		is("renewal", sent, lock)
		w.Release(lock)
	})
}

func TestLockContextEndsBeforeAnotherClientCanAcquireKey(t *testing.T) {
	oneLock(t, func(t *testing.T, w *lab.World, _ *leasehold.Client, wire *lab.Wire, lock *leasehold.Lock) {
		began := time.Now()
		wire.SetFault(lab.Cut)
		ended := make(chan time.Time, 1)
		context.AfterFunc(lock.Context(), func() { ended <- time.Now() })
		next := holds(w, "job")
		lab.Want(t, "trust ended after", (<-ended).Sub(began), 18*time.Second)
		var lost *leasehold.LostError
		if err := context.Cause(lock.Context()); !errors.As(err, &lost) || lost.Reason != leasehold.LostExpired || lost.Token != lock.Token() {
			t.Errorf("cause %v", err)
		}
		w.Release(next)
		_ = lock.Release(t.Context())
	})
}

func TestLockReportsLossImmediatelyAfterProcessPause(t *testing.T) {
	for name, look := range map[string]func(*leasehold.Lock, context.Context) error{
		"Lock.Err":      func(l *leasehold.Lock, _ context.Context) error { return l.Err() },
		"Context.Err":   func(l *leasehold.Lock, _ context.Context) error { return l.Context().Err() },
		"context.Cause": func(l *leasehold.Lock, _ context.Context) error { return context.Cause(l.Context()) },
		"Context.Done": func(l *leasehold.Lock, _ context.Context) error {
			select {
			case <-l.Context().Done():
				return context.Canceled
			default:
				return nil
			}
		},
		"Bind.Err":   func(_ *leasehold.Lock, bound context.Context) error { return bound.Err() },
		"Bind.Cause": func(_ *leasehold.Lock, bound context.Context) error { return context.Cause(bound) },
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				k := &lab.Jumps{}
				c, _ := w.Client(lab.Config(), k.Edit)
				lock := w.Acquire(c, "job")
				bound, cancel := lock.Bind(t.Context())
				defer cancel()
				lab.WantErr(t, "lock before the pause", look(lock, bound), nil)
				k.Boot.Store(int64(19 * time.Second)) // the machine was suspended, so no timer has fired
				switch err := look(lock, bound); {
				case err == nil:
					t.Fatal("after the pause the lock reports no loss")
				case strings.HasSuffix(name, "Cause") && !errors.Is(err, leasehold.ErrLost):
					t.Errorf("the first call does not return the loss: %v", err)
				}
				if lost := as[*leasehold.LostError](lock.Err()); lost == nil || lost.Reason != leasehold.LostPaused {
					t.Errorf("error %v", lock.Err())
				}
				_ = lock.Release(t.Context())
			})
		})
	}
}

func TestLossIsAttributedToPauseOnlyIfProcessWasPaused(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		k := &lab.Jumps{}
		c, wire := w.Client(lab.Config(), k.Edit)
		var lost *leasehold.LostError

		left := w.Acquire(c, "left alone", leasehold.WithoutRenewal())
		lab.Elapse(20 * time.Second)
		if !errors.As(left.Err(), &lost) || lost.Reason != leasehold.LostExpired {
			t.Errorf("without renewal: %v", left.Err())
		}

		renewed := w.Acquire(c, "renewed")
		wire.SetFault(lab.Once(lab.Call.Renews, lab.LoseReply))
		lab.Elapse(20 * time.Second) // the reply to the first renewal is lost, and the next renewals succeed
		k.Boot.Store(int64(time.Hour))
		if !errors.As(renewed.Err(), &lost) || lost.Reason != leasehold.LostPaused || lost.Err != nil {
			t.Errorf("paused after renewals: %v", renewed.Err())
		}
		_ = left.Release(t.Context())
		_ = renewed.Release(t.Context())
	})
}

func TestLockWithMaximumLeaseCanBeAcquired(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		lock := holds(w, "job", leasehold.WithLease(math.MaxInt64))
		lab.WantErr(t, "lock", lock.Err(), nil)
		w.Release(lock)
	})
}

func TestLockStaysHeldDespiteOneLostReplyToRenewal(t *testing.T) { // in dynamolock, awslabs and python_dynamodb_lock, one lost reply stops all further heartbeats
	oneLock(t, func(t *testing.T, w *lab.World, _ *leasehold.Client, wire *lab.Wire, lock *leasehold.Lock) {
		wire.SetFault(lab.Once(lab.Call.Renews, lab.LoseReply))
		lab.Elapse(2 * time.Minute)
		lab.WantErr(t, "lock", lock.Err(), nil)
		lab.Want(t, "version in the record", lock.Record().Version, lab.Text(w.Item("job"), "recordVersionNumber"))
		w.Release(lock)
	})
}

func TestRenewalsContinueAfterFailedRenewals(t *testing.T) { // python_dynamodb_lock sends no more heartbeats once it has reported a lock "in danger"
	oneLock(t, func(t *testing.T, w *lab.World, _ *leasehold.Client, wire *lab.Wire, lock *leasehold.Lock) {
		for range 5 {
			wire.SetFault(lab.Cut)
			lab.Elapse(11 * time.Second)
			wire.SetFault(nil)
			lab.Elapse(6 * time.Second)
			lab.WantErr(t, "lock", lock.Err(), nil)
		}
		w.Release(lock)
	})
}

func TestRenewalIsNotSentAfterContextOfLockHasEnded(t *testing.T) {
	oneLock(t, func(t *testing.T, _ *lab.World, _ *leasehold.Client, wire *lab.Wire, lock *leasehold.Lock) {
		ended := make(chan struct{})
		context.AfterFunc(lock.Context(), func() { close(ended) })
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			select {
			case <-ended:
				if r.Renews() {
					t.Errorf("a renewal was sent after trust had ended")
				}
			default:
			}
			return lab.Refusal(500, "InternalServerError"), nil
		})
		lab.Elapse(5 * time.Minute)
		_ = lock.Release(t.Context())
	})
}
