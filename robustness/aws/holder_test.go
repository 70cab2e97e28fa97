package aws

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/semaphore"
)

// holders are the ways in which a lock can be held, and by what it is renewed.
var holders = map[string]struct {
	config  func() leasehold.Config
	acquire func(ctx context.Context, c *leasehold.Client) (*leasehold.Lock, error)
	seek    func(ctx context.Context, c *leasehold.Client) (*leasehold.Lock, error) // what another client asks for; nil: the same
}{
	"a lock": {config: lab.Config, acquire: func(ctx context.Context, c *leasehold.Client) (*leasehold.Lock, error) {
		return c.Acquire(ctx, "job")
	}},
	"under a shared lease": {config: lab.SharedConfig, acquire: func(ctx context.Context, c *leasehold.Client) (*leasehold.Lock, error) {
		return c.Acquire(ctx, "job")
	}},
	"a reader": {config: lab.Config, acquire: func(ctx context.Context, c *leasehold.Client) (*leasehold.Lock, error) {
		return lab.AcquireRead(ctx, c, "job")
	}, seek: func(ctx context.Context, c *leasehold.Client) (*leasehold.Lock, error) {
		return lab.AcquireWrite(ctx, c, "job")
	}},
	"a writer": {config: lab.Config, acquire: func(ctx context.Context, c *leasehold.Client) (*leasehold.Lock, error) {
		return lab.AcquireWrite(ctx, c, "job")
	}},
	"a permit": {config: lab.Config, acquire: func(ctx context.Context, c *leasehold.Client) (*leasehold.Lock, error) {
		s, err := semaphore.New(c, "job", 1)
		if err != nil {
			return nil, err
		}
		return s.Acquire(ctx)
	}},
}

// eachHolder runs a test for every way to hold a lock in every trouble that its
// renewals meet. It begins one and a half periods after the grant.
func eachHolder(t *testing.T, test func(t *testing.T, s *scene, x trouble, lock *leasehold.Lock, seek func(context.Context) (*leasehold.Lock, error))) {
	for kind, h := range holders {
		t.Run(kind, func(t *testing.T) {
			for i, x := range troubles {
				if leftOut(i) {
					continue
				}
				t.Run(x.name, func(t *testing.T) {
					lab.InBubble(t, func(t *testing.T, w *lab.World) {
						s := newIdleScene(t, w, h.config())
						lock, err := h.acquire(t.Context(), s.c)
						if err != nil {
							t.Fatal(err)
						}
						seek := h.seek
						if seek == nil {
							seek = h.acquire
						}
						lab.Elapse(7500 * time.Millisecond)
						s.begin(x)
						test(t, s, x, lock, func(ctx context.Context) (*leasehold.Lock, error) { return seek(ctx, s.other) })
						s.end()
						_ = s.c.Close(t.Context())
						_ = s.other.Close(t.Context())
					})
				})
			}
		})
	}
}

func TestAHolderInTroubleKeepsItsLockAsLongAsTrustAllowsAndNoLonger(t *testing.T) {
	eachHolder(t, func(t *testing.T, s *scene, x trouble, lock *leasehold.Lock, seek func(context.Context) (*leasehold.Lock, error)) {
		until := lock.TrustedUntil()
		if left := time.Until(until); left < 10*time.Second || left > 18*time.Second {
			t.Fatalf("trusted for %v", left)
		}
		lab.Elapse(time.Until(until) - time.Millisecond)
		if err := lock.Err(); err != nil {
			t.Errorf("lost before its trust was over: %v", err)
		}
		if !lock.TrustedUntil().Equal(until) {
			t.Errorf("trusted until %v, and no renewal can have succeeded since %v", lock.TrustedUntil(), until)
		}
		lab.Elapse(2 * time.Millisecond)
		var lost *leasehold.LostError
		if err := lock.Err(); !errors.As(err, &lost) || lost.Reason != leasehold.LostExpired || lost.Err == nil {
			t.Fatalf("after its trust: %v", err)
		}
		for _, part := range []string{"job", "in table locks", x.advice} {
			if !strings.Contains(lost.Error(), part) {
				t.Errorf("%q is missing in: %v", part, lost)
			}
		}
		for _, target := range x.is {
			if !errors.Is(lost.Err, target) && !errors.Is(target, leasehold.ErrTableNotFound) {
				t.Errorf("it does not match %v: %v", target, lost.Err)
			}
		}
	})
}

func TestNobodyIsGrantedTheKeyOfAHolderInTroubleBeforeItHasStopped(t *testing.T) {
	eachHolder(t, func(t *testing.T, s *scene, _ trouble, lock *leasehold.Lock, seek func(context.Context) (*leasehold.Lock, error)) {
		granted := make(chan error, 1)
		go func() {
			theirs, err := seek(t.Context())
			if lock.Err() == nil {
				t.Error("another was granted the key while its holder trusted it")
			}
			if err == nil && theirs.Err() != nil {
				t.Error(theirs.Err())
			}
			granted <- err
		}()
		began := time.Now()
		if err := <-granted; err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 25*time.Second {
			t.Errorf("after %v", took)
		}
	})
}

func TestAHolderGoesOnRenewingOnceTheCauseIsGone(t *testing.T) {
	eachHolder(t, func(t *testing.T, s *scene, _ trouble, lock *leasehold.Lock, seek func(context.Context) (*leasehold.Lock, error)) {
		lab.Elapse(time.Until(lock.TrustedUntil()) - 2*time.Second) // a pause between two renewals is a second at most
		s.end()
		lab.Elapse(2 * time.Second)
		if left := time.Until(lock.TrustedUntil()); lock.Err() != nil || left < 10*time.Second {
			t.Fatalf("trusted for %v more: %v", left, lock.Err())
		}
		lab.Elapse(5 * time.Minute)
		if err := lock.Err(); err != nil {
			t.Error(err)
		}
		if err := lock.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if theirs, err := seek(t.Context()); err != nil || theirs.Token() <= lock.Token() && !strings.Contains(theirs.Key().Partition, "/") {
			t.Errorf("then: %v", err)
		}
	})
}

func TestAWaitGoesOnThroughTroubleThatPasses(t *testing.T) {
	for kind, config := range configs {
		for _, x := range troubles {
			t.Run(kind+"/"+x.name, func(t *testing.T) {
				lab.InBubble(t, func(t *testing.T, w *lab.World) {
					s := newScene(t, w, config())
					ended := make(chan error, 1)
					go func() { ended <- acquired(s.c.Acquire(t.Context(), "theirs")) }()
					lab.Elapse(10 * time.Second)
					s.begin(x)
					lab.Elapse(10 * time.Second)
					select {
					case err := <-ended:
						if x.passes || x.writes {
							t.Errorf("it ended: %v", err)
						}
						if op := (*leasehold.OpError)(nil); !errors.As(err, &op) {
							t.Errorf("it ended with %v", err)
						}
					default:
						if !x.passes && !x.writes {
							t.Error("it goes on, though it cannot succeed")
						}
						s.end()
						w.Release(s.theirs)
						lab.Elapse(5 * time.Second)
						select {
						case err := <-ended:
							if err != nil {
								t.Error(err)
							}
						default:
							t.Error("the key is free, and the wait goes on")
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
