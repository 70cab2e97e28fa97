package aws

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// eachHolder calls the function "test" for each way to renew locks and each simulated failure.
// Before the call, a client acquires a lock. The failure begins after one and a half renewal
// periods. The function "seek" acquires the same key for another client.
func eachHolder(t *testing.T, test func(t *testing.T, s *scene, x trouble, lock *leasehold.Lock, seek func(context.Context) (*leasehold.Lock, error))) {
	lab.Variants(t, lab.Leases(), func(t *testing.T, config leasehold.Config) {
		for i, x := range troubles {
			if leftOut(i) {
				continue
			}
			t.Run(x.name, func(t *testing.T) {
				lab.InBubble(t, func(t *testing.T, w *lab.World) {
					s := newIdleScene(t, w, config)
					lock := w.Acquire(s.c, "job")
					lab.Elapse(7500 * time.Millisecond)
					s.begin(x)
					test(t, s, x, lock, func(ctx context.Context) (*leasehold.Lock, error) { return s.other.Acquire(ctx, "job") })
					s.end()
					_ = s.c.Close(t.Context())
					_ = s.other.Close(t.Context())
				})
			})
		}
	})
}

func TestLockIsLostAtEndOfTrustIfRenewalsFail(t *testing.T) {
	eachHolder(t, func(t *testing.T, s *scene, x trouble, lock *leasehold.Lock, seek func(context.Context) (*leasehold.Lock, error)) {
		until := lock.TrustedUntil()
		lab.WantRange(t, "trusted for", time.Until(until), 10*time.Second, 18*time.Second)
		lab.Elapse(time.Until(until) - time.Millisecond)
		lab.OK(t, lock.Err())
		lab.Want(t, "trusted until a time that no renewal has extended", lock.TrustedUntil().Equal(until), true)
		lab.Elapse(2 * time.Millisecond)
		var lost *leasehold.LostError
		if err := lock.Err(); !errors.As(err, &lost) || lost.Reason != leasehold.LostExpired || lost.Err == nil {
			t.Fatalf("after the end of trust: %v", err)
		}
		lab.WantText(t, "the lost lock", lost, "job", "in table locks", x.advice)
		for _, target := range x.is {
			if !errors.Is(lost.Err, target) && !errors.Is(target, leasehold.ErrTableNotFound) {
				t.Errorf("the error does not match %v: %v", target, lost.Err)
			}
		}
	})
}

func TestNextGrantComesOnlyAfterHolderReportsLoss(t *testing.T) {
	eachHolder(t, func(t *testing.T, s *scene, _ trouble, lock *leasehold.Lock, seek func(context.Context) (*leasehold.Lock, error)) {
		granted := make(chan error, 1)
		go func() {
			theirs, err := seek(t.Context())
			if lock.Err() == nil {
				t.Error("another client was granted the key while the holder trusted its lock")
			}
			if err == nil && theirs.Err() != nil {
				t.Error(theirs.Err())
			}
			granted <- err
		}()
		began := time.Now()
		lab.OK(t, <-granted)
		lab.WantTook(t, "granted after", began, 0, 25*time.Second)
	})
}

func TestHolderRenewsAgainAfterFaultEnds(t *testing.T) {
	eachHolder(t, func(t *testing.T, s *scene, _ trouble, lock *leasehold.Lock, seek func(context.Context) (*leasehold.Lock, error)) {
		lab.Elapse(time.Until(lock.TrustedUntil()) - 2*time.Second) // leaves enough time for a renewal, because pauses between renewals last at most one second
		s.end()
		lab.Elapse(2 * time.Second)
		if left := time.Until(lock.TrustedUntil()); lock.Err() != nil || left < 10*time.Second {
			t.Fatalf("trusted for %v more: %v", left, lock.Err())
		}
		lab.Elapse(5 * time.Minute)
		lab.OK(t, lock.Err())
		lab.OK(t, lock.Release(t.Context()))
		if theirs, err := seek(t.Context()); err != nil || theirs.Token() <= lock.Token() {
			t.Errorf("acquire after the release: %v", err)
		}
	})
}

func TestAcquireStopsWaitingOnlyOnPermanentFault(t *testing.T) {
	for kind, config := range lab.Leases() {
		for _, x := range troubles {
			t.Run(kind+"/"+x.name, func(t *testing.T) {
				lab.InBubble(t, func(t *testing.T, w *lab.World) {
					s := newScene(t, w, config)
					ended := make(chan error, 1)
					go func() { ended <- lab.ErrorOf(s.c.Acquire(t.Context(), "theirs")) }()
					lab.Elapse(10 * time.Second)
					s.begin(x)
					lab.Elapse(10 * time.Second)
					select {
					case err := <-ended:
						if x.passes || x.denies || x.writes {
							t.Errorf("the wait ended: %v", err)
						}
						lab.WantAs[*leasehold.OpError](t, "the wait", err)
					default:
						if !x.passes && !x.denies && !x.writes {
							t.Error("the wait continues, although it cannot succeed")
						}
						s.end()
						w.Release(s.theirs)
						lab.Elapse(5 * time.Second)
						select {
						case err := <-ended:
							lab.WantErr(t, "the waiter", err, nil)
						default:
							t.Error("the wait continues, although the key is free")
						}
					}
					s.end()
					_ = s.c.Close(t.Context())
					_ = s.other.Close(t.Context())
				})
			})
		}
	}
}
