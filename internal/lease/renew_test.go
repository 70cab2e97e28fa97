package lease

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

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

func TestQueuedRenewReturnsFailureOfItsLastAttempt(t *testing.T) {
	inWorld(t, manual, func(t *testing.T, w *world) {
		w.will(dropped)
		// enter blocks renewals of the lease before Renew sends its second attempt.
		time.AfterFunc(time.Millisecond, func() { w.lease.enter(context.Background()) })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if unknown, err := w.lease.Renew(ctx, Changes{}); !errors.Is(err, errLost) || !unknown || w.requests() != 1 {
			t.Errorf("unknown: %v, %v, after %d requests", unknown, err, w.requests())
		}
	})
}

// slowly is a fate: the renewal is applied, and answered after two seconds.
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
