package acquire_test

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

// The library dynamo-dlm fails this: its waiters read without pauses.
func TestWaiterReadsTwicePerSecondWhileHolderRenews(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, _, lock := w.Holding(lab.Config())
		lab.Elapse(time.Minute) // after this minute the grant is old, and a waiter reads the record of an old grant rarely
		b, wire := w.Client(lab.Config())
		_, _ = b.Acquire(w.Within(time.Minute), "job")
		if n := len(wire.Sent()); n < 60 || n > 350 {
			t.Errorf("%d looks in a minute: one in half a second, at the most often and on average, is wanted", n)
		}
		w.Release(lock)
	})
}

// In this case the library dynamolock panics.
func TestWaiterAcquiresKeyOnceRecordOfHolderIsDeleted(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		dead := w.LeavesHeld(lab.Config(), 0, "job")[0]
		b, _ := w.Client(lab.Config())
		granted := w.Queue(b, "job")
		lab.Elapse(5 * time.Second)
		w.Delete("job")
		began := time.Now()
		lock := <-granted
		if took := time.Since(began); took > time.Second {
			t.Errorf("granted %v after the record vanished", took)
		}
		w.Release(lock)
		_ = dead.Release(t.Context())
	})
}

// Each TryAcquire continues the observation of the holder that earlier calls began. In some
// other lock libraries, each try-lock begins a new observation.
func TestTryAcquireTakesOverHolderObservedForFullLease(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		dead := w.LeavesHeld(lab.Config(), time.Hour, "job")[0]
		b, _ := w.Client(lab.Config())
		if _, err := b.TryAcquire(t.Context(), "job", leasehold.NoWaitEvenIfDead()); !errors.Is(err, leasehold.ErrHeld) {
			t.Fatalf("first try: %v", err)
		}
		lab.Elapse(20*time.Second - time.Millisecond)
		began := time.Now()
		if _, err := b.TryAcquire(t.Context(), "job", leasehold.NoWaitEvenIfDead()); !errors.Is(err, leasehold.ErrHeld) || time.Since(began) != 0 {
			t.Fatalf("a moment before the lease ends: %v after %v", err, time.Since(began))
		}
		lab.Elapse(time.Millisecond)
		w.Release(w.Acquire(b, "job", leasehold.NoWaitEvenIfDead()))
		_ = dead.Release(t.Context())
	})
}

func TestWaiterWaitsForPeerHolderWithCopiedToken(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		w.Release(w.Acquire(a, "job"))
		w.Update("job", map[string]types.AttributeValue{"isReleased": nil, "ownerName": lab.Str("dynamolock"), "leaseDuration": lab.Str("8s"), "recordVersionNumber": lab.Str("x")})
		_, err := a.TryAcquire(t.Context(), "job")
		var held *leasehold.HeldError
		if !errors.As(err, &held) || held.Holder.Token != 0 || held.Holder.Lease != 8*time.Second {
			t.Fatalf("error %v", err)
		}
		began := time.Now()
		w.Release(w.Acquire(a, "job"))
		if took := time.Since(began); took < 8*time.Second-time.Millisecond || took > 9*time.Second {
			t.Errorf("taken over after %v", took)
		}
	})
}

func TestJumpOfBootClockDoesNotCauseTakeover(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, _, lock := w.Holding(lab.Config())
		k := &lab.Jumps{}
		b, _ := w.Client(lab.Config(), k.Edit)
		if _, err := b.TryAcquire(t.Context(), "job"); !errors.Is(err, leasehold.ErrHeld) {
			t.Fatal(err)
		}
		k.Boot.Store(int64(time.Hour))
		if _, err := b.TryAcquire(t.Context(), "job"); !errors.Is(err, leasehold.ErrHeld) {
			t.Fatalf("after a step of an hour: %v", err)
		}
		w.Release(lock)
	})
}

func TestTryAcquireGivesUpBehindUnansweredCallOfSameClient(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.Cut)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		lab.Go(func() error { return lab.ErrorOf(c.Acquire(ctx, "job")) })
		began := time.Now()
		_, err := c.TryAcquire(ctx, "job")
		if took := time.Since(began); err == nil || took > 15*time.Second {
			t.Errorf("error %v after %v", err, took)
		}
		cancel()
		lab.Elapse(10 * time.Second)
	})
}

func TestTryAcquireInLocalQueueReturnsOnceHolderIsKnown(t *testing.T) {
	lab.Each(t, map[string]bool{"here": false, "elsewhere": true}, func(t *testing.T, w *lab.World, foreign bool) {
		c, wire := w.Client(lab.Config())
		if foreign {
			_, _, lock := w.Holding(lab.Config())
			defer w.Release(lock)
		}
		wire.SetFault(lab.Once(lab.Call.Grants, lab.Slow(time.Second)))
		ctx := w.Within(5 * time.Second)
		ahead := lab.Go(func() error {
			l, err := c.Acquire(ctx, "job")
			if err == nil {
				time.Sleep(3 * time.Second)
				w.Release(l)
			}
			return err
		})
		began := time.Now()
		if _, err := c.TryAcquire(t.Context(), "job"); !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("took %v", took)
		}
		<-ahead
	})
}

func TestCancelledAcquireWithoutRenewalFreesKeyBeforeReturn(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.Once(lab.Call.Grants, lab.Slow(time.Second)))
		if _, err := c.Acquire(w.Within(100*time.Millisecond), "job", leasehold.WithoutRenewal()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if !w.IsReleased("job") {
			t.Errorf("left behind %v", w.Item("job"))
		}
		wire.SetFault(lab.Cut)
		began := time.Now()
		_, _ = c.Acquire(w.Within(100*time.Millisecond), "job", leasehold.WithoutRenewal())
		if took := time.Since(began); took > 2100*time.Millisecond {
			t.Errorf("returned after %v, past the grace", took)
		}
		wire.SetFault(nil)
		lab.Elapse(10 * time.Second)
	})
}

func TestTakeoverIsRejectedIfRenewalIsAppliedFirst(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, wireA := w.Client(lab.Config())
		b, wireB := w.Client(lab.Config())
		w.Acquire(a, "job")
		began := time.Now()
		var renewal func() (*http.Response, error)
		wireA.SetFault(func(r *lab.Request) (*http.Response, error) {
			if renewal == nil {
				renewal = r.Send
			}
			return lab.Cut(r)
		})
		var landed time.Time
		wireB.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Grants() && landed.IsZero() && time.Since(began) > 19*time.Second {
				_, _ = renewal()
				landed = time.Now()
			}
			return r.Send()
		})
		w.Acquire(b, "job")
		if waited := time.Since(landed); landed.IsZero() || waited < 20*time.Second || waited > 22*time.Second {
			t.Errorf("taken over %v after the renewal had landed, a lease is 20s", waited)
		}
		_ = a.Close(t.Context())
	})
}
