package lease

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

func TestExpiryWarningIsGivenIfLeaseIsShortenedOrLost(t *testing.T) {
	for name, shorten := range map[string]func(w *world) error{
		"a shorter lease": func(w *world) error { return w.renew(Changes{Lease: 10 * time.Second}) },
		"the lease is lost": func(w *world) error {
			w.overwrite("another's")
			_ = w.renew(Changes{})
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, manual, func(t *testing.T, w *world) {
				var given atomic.Int32
				w.lease.Warn(&Warning{Left: 10 * time.Second, Call: func() { given.Add(1) }})
				wantErr(t, "shorten", shorten(w), nil)
				synctest.Wait()
				want(t, "warnings", given.Load(), 1)
			})
		})
	}
}

func TestExpiryWarningIsNotGivenForReleasedLease(t *testing.T) {
	inWorld(t, manual, func(t *testing.T, w *world) {
		w.lease.Warn(&Warning{Left: 5 * time.Second, Call: func() { t.Error("given") }})
		w.end()
		time.Sleep(time.Minute)
	})
}

func TestRenewalWithCancelledContextIsNotSent(t *testing.T) {
	inWorld(t, manual, func(t *testing.T, w *world) {
		ctx, leave := context.WithCancelCause(t.Context())
		errLeft := errors.New("left")
		leave(errLeft)
		if unknown, err := w.lease.Renew(ctx, Changes{}); !errors.Is(err, errLeft) || unknown || w.requests() != 0 {
			t.Errorf("unknown: %v, %v, after %d requests", unknown, err, w.requests())
		}
	})
}

func TestTimedOutRenewReturnsErrorOfLastAttempt(t *testing.T) {
	inWorld(t, manual, func(t *testing.T, w *world) {
		w.will(dropped)
		// Lock l.renews after the first attempt of Renew. Before its second attempt, Renew then waits
		// for l.renews until the context expires.
		time.AfterFunc(time.Millisecond, func() { w.lease.enter(context.Background()) })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if unknown, err := w.lease.Renew(ctx, Changes{}); !errors.Is(err, errLost) || !unknown || w.requests() != 1 {
			t.Errorf("unknown: %v, %v, after %d requests", unknown, err, w.requests())
		}
	})
}

// slowly is a fate that applies the renewal immediately, but delays the answer by two seconds.
func slowly(apply func() (protocol.Item, error)) (protocol.Item, error) {
	defer time.Sleep(2 * time.Second)
	return apply()
}

func TestSwitchToManualRenewalCancelsOverdueRenewal(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		time.Sleep(3 * time.Second)
		w.will(slowly)
		go func() { _, _ = w.lease.Renew(context.Background(), Changes{}) }()
		time.Sleep(100 * time.Millisecond)
		go w.lease.ByHand()
		time.Sleep(10 * time.Second) // a renewal in the background became due while ByHand waited for Renew
		want(t, "renewals", w.requests(), 1)
	})
}

func TestDefaultTimingAllowsThreeRenewalsPerLease(t *testing.T) {
	for skew, timing := range map[time.Duration]Timing{
		0:                {Lease: 20 * time.Second, Margin: 2 * time.Second, Every: 5 * time.Second},
		12 * time.Second: {Lease: 20 * time.Second, Margin: 2 * time.Second, Every: 2 * time.Second, Skew: 12 * time.Second},
	} {
		want(t, fmt.Sprint("timing for a skew of ", skew), Usual(20*time.Second, skew), timing)
	}
}

func TestTimingForOtherLeaseDurationHasSameClockSkew(t *testing.T) {
	usual := Usual(20*time.Second, 12*time.Second)
	for lease, timing := range map[time.Duration]Timing{
		40 * time.Second: {Lease: 40 * time.Second, Margin: 4 * time.Second, Every: 4 * time.Second, Skew: 12 * time.Second},
		15 * time.Second: {Lease: 15 * time.Second, Margin: 1500 * time.Millisecond, Every: 500 * time.Millisecond, Skew: 12 * time.Second},
	} {
		want(t, fmt.Sprint("timing of a lease of ", lease), usual.Scaled(lease), timing)
	}
}
