package leasehold_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestTrustCountsFromBeforeTheRenewalWasSent(t *testing.T) { // python_dynamodb_lock stamps after the call
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.Once(lab.Call.Grants, lab.Slow(2*time.Second)))
		sent := time.Now()
		lock := w.Acquire(c, "job", leasehold.WithoutRenewal())
		if want := sent.Add(18 * time.Second); !lock.TrustedUntil().Equal(want) {
			t.Errorf("after a slow grant trusted until %v, want %v", lock.TrustedUntil(), want)
		}
		wire.SetFault(lab.Once(lab.Call.Renews, lab.Slow(time.Second)))
		sent = time.Now()
		if err := lock.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		if want := sent.Add(18 * time.Second); !lock.TrustedUntil().Equal(want) {
			t.Errorf("after a slow renewal trusted until %v, want %v", lock.TrustedUntil(), want)
		}
		w.Release(lock)
	})
}

func TestTrustEndsAMarginBeforeAnybodyElseCanBeGranted(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, wire := w.Client(lab.Config())
		b, _ := w.Client(lab.Config())
		lock := w.Acquire(a, "job")
		began := time.Now()
		wire.SetFault(lab.Cut)
		ended := make(chan time.Time, 1)
		context.AfterFunc(lock.Context(), func() { ended <- time.Now() })
		next := w.Acquire(b, "job")
		if took := (<-ended).Sub(began); took != 18*time.Second {
			t.Errorf("trust ended after %v", took)
		}
		var lost *leasehold.LostError
		if err := context.Cause(lock.Context()); !errors.As(err, &lost) || lost.Reason != leasehold.LostExpired || lost.Token != lock.Token() {
			t.Errorf("cause %v", err)
		}
		w.Release(next)
		_ = lock.Release(t.Context())
	})
}

func TestTheFirstLookAfterAPauseIsToldTheTruth(t *testing.T) {
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
				if err := look(lock, bound); err != nil {
					t.Fatalf("before the pause: %v", err)
				}
				k.Boot.Store(int64(19 * time.Second)) // suspended: no timer has run
				switch err := look(lock, bound); {
				case err == nil:
					t.Fatal("after the pause the lock is believed in")
				case strings.HasSuffix(name, "Cause") && !errors.Is(err, leasehold.ErrLost):
					t.Errorf("the first look is not told why: %v", err)
				}
				var lost *leasehold.LostError
				if !errors.As(lock.Err(), &lost) || lost.Reason != leasehold.LostPaused {
					t.Errorf("error %v", lock.Err())
				}
				_ = lock.Release(t.Context())
			})
		})
	}
}

func TestALossIsAPauseOnlyIfNoRenewalWasBegun(t *testing.T) {
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
		lab.Elapse(20 * time.Second) // one renewal fails, others succeed
		k.Boot.Store(int64(time.Hour))
		if !errors.As(renewed.Err(), &lost) || lost.Reason != leasehold.LostPaused || lost.Err != nil {
			t.Errorf("paused after renewals: %v", renewed.Err())
		}
		_ = left.Release(t.Context())
		_ = renewed.Release(t.Context())
	})
}

func TestALeaseMayBeForEver(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		lock, err := c.Acquire(t.Context(), "job", leasehold.WithLease(math.MaxInt64))
		if err != nil {
			t.Fatalf("%v: %v", err, lab.Text(w.Item("job"), "leaseDuration"))
		}
		if lock.Err() != nil {
			t.Error(lock.Err())
		}
		w.Release(lock)
	})
}

func TestAnEngineThatShowsNoOldItemIsAsked(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		b, wire := w.Client(lab.Config())
		wire.SetFault(lab.ShowNothing)
		lock := w.Acquire(a, "job", leasehold.WithoutRenewal())
		var held *leasehold.HeldError
		if _, err := b.TryAcquire(t.Context(), "job"); !errors.As(err, &held) || held.Holder.Token != lock.Token() {
			t.Errorf("held: %v", err)
		}
		if sent := wire.Sent(); len(sent) != 2 || sent[1].Op != "GetItem" {
			t.Errorf("sent %v", sent)
		}
		w.Release(lock)

		lost := w.Acquire(b, "job", leasehold.WithoutRenewal())
		w.Delete("job")
		next := w.Acquire(a, "job")
		var gone *leasehold.LostError
		if err := lost.Renew(t.Context()); !errors.As(err, &gone) || gone.Reason != leasehold.LostReplaced || gone.By.Token != next.Token() {
			t.Errorf("lost: %v", err)
		}
		_ = lost.Release(t.Context())
		w.Release(next)

		if _, err := b.Acquire(t.Context(), "none", leasehold.IfExists()); !errors.Is(err, leasehold.ErrNotFound) {
			t.Errorf("none: %v", err)
		}
	})
}
