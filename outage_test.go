package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
)

// out answers every request as DynamoDB does in an outage.
func out(context.Context, call, func() (*http.Response, error)) (*http.Response, error) {
	return refusal(503, "ServiceUnavailable"), nil
}

func reset(context.Context, call, func() (*http.Response, error)) (*http.Response, error) {
	return nil, errReset
}

// heldThroughOutage returns a lock whose holder holds on, and its wire, on which
// there is an outage from now on.
func (w *world) heldThroughOutage() (*leasehold.Lock, *wire) {
	w.t.Helper()
	cfg := config()
	cfg.HoldThroughOutage = true
	c, wire := w.client(cfg)
	lock := w.acquire(c, "job")
	wire.setFault(out)
	return lock, wire
}

func TestAnOutageIsHeldThroughOnRequestAlone(t *testing.T) { // awslabs: hold the lock on service unavailable
	for name, hold := range map[string]bool{"on request": true, "by default": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				cfg := config()
				cfg.HoldThroughOutage = hold
				c, wire := w.client(cfg)
				lock := w.acquire(c, "job")
				wire.setFault(out)
				elapse(5 * time.Minute)
				if err := lock.Err(); hold != (err == nil) {
					t.Fatalf("after five minutes: %v", err)
				}
				wire.setFault(nil)
				elapse(10 * time.Second)
				if hold && time.Until(lock.TrustedUntil()) < 10*time.Second {
					t.Errorf("not renewed after the outage: trusted until %v", lock.TrustedUntil())
				}
				_ = lock.Release(t.Context())
			})
		})
	}
}

func TestAnOutageThatEndsInAnothersGrantIsALoss(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		cfg := config()
		cfg.HoldThroughOutage = true
		c, wire := w.client(cfg)
		lock := w.acquire(c, "job")
		wire.setFault(out) // for this process alone
		other, _ := w.client(config())
		theirs := w.acquire(other, "job")
		if err := lock.Err(); err != nil {
			t.Fatalf("not held on to: %v", err)
		}
		wire.setFault(nil)
		elapse(10 * time.Second)
		var lost *leasehold.LostError
		if !errors.As(lock.Err(), &lost) || lost.Reason != leasehold.LostReplaced {
			t.Errorf("after the outage: %v", lock.Err())
		}
		w.release(theirs)
	})
}

func TestAReleaseAfterAnOutageClaimsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		lock, wire := w.heldThroughOutage()
		other, _ := w.client(config())
		theirs := w.acquire(other, "job")
		wire.setFault(once(call.releases, reset))
		if err := lock.Release(t.Context()); err == nil {
			t.Error("nil, though the lease had run out and another was granted the key")
		}
		w.release(theirs)
	})
}

func TestSilenceIsNoOutage(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		lock, wire := w.heldThroughOutage()
		elapse(30 * time.Second)
		if err := lock.Err(); err != nil {
			t.Fatal(err)
		}
		wire.setFault(reset)
		elapse(10 * time.Second)
		if err := lock.Err(); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("no reply at all: %v", err)
		}
	})
}

func TestNoWayToFreeALockAfterAnOutageClaimsAnything(t *testing.T) {
	for name, free := range map[string]func(ctx context.Context, g *leasehold.Group) (commit, release error){
		"a release of all": func(ctx context.Context, g *leasehold.Group) (error, error) {
			return nil, g.Release(ctx)
		},
		"a commit of one": func(ctx context.Context, g *leasehold.Group) (error, error) {
			return g.Locks()[0].CommitAndRelease(ctx, writes(note("a", "1"))), g.Locks()[0].Release(ctx)
		},
		"a commit of all": func(ctx context.Context, g *leasehold.Group) (error, error) {
			return g.CommitAndRelease(ctx, writes(note("a", "1"))), g.Release(ctx)
		},
	} {
		for _, shared := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, shared lease %v", name, shared), func(t *testing.T) {
				inBubble(t, func(t *testing.T, w *world) {
					cfg := config()
					cfg.HoldThroughOutage, cfg.SharedLease = true, shared
					c, wire := w.work().client(cfg)
					g := w.acquireAll(c, leasehold.Keys("x", "y"))
					wire.setFault(out) // for this process alone
					other, _ := w.client(config())
					theirs := w.acquireAll(other, leasehold.Keys("x", "y"))
					if err := g.Err(); err != nil {
						t.Fatalf("not held on to: %v", err)
					}
					var sent atomic.Int64
					wire.setFault(func(_ context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
						if sent.Add(1) <= 3 { // not answered, and not delivered
							return nil, errReset
						}
						return next()
					})
					commit, release := free(t.Context(), g)
					if name != "a release of all" && commit == nil || release == nil {
						t.Errorf("commit: %v, release: %v, though another was granted the keys", commit, release)
					}
					w.wantLog()
					if err := theirs.Release(t.Context()); err != nil {
						t.Error(err)
					}
					_ = c.Close(t.Context())
				})
			})
		}
	}
}

func TestACommitThatReleasesLandsAfterAnOutageIfNobodyElseWasGranted(t *testing.T) {
	for name, commit := range map[string]func(ctx context.Context, g *leasehold.Group) error{
		"of one": func(ctx context.Context, g *leasehold.Group) error {
			return g.Locks()[0].CommitAndRelease(ctx, writes(note("a", "1")))
		},
		"of all": func(ctx context.Context, g *leasehold.Group) error {
			return g.CommitAndRelease(ctx, writes(note("a", "1")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				cfg := config()
				cfg.HoldThroughOutage = true
				c, wire := w.work().client(cfg)
				g := w.acquireAll(c, leasehold.Keys("x", "y"))
				wire.setFault(out)
				elapse(time.Minute)
				wire.setFault(nil)
				if err := commit(t.Context(), g); err != nil {
					t.Errorf("commit: %v", err)
				}
				w.wantLog("1")
				_ = g.Release(t.Context())
			})
		})
	}
}

func TestALockDetachedInAnOutageIsResumedOrLost(t *testing.T) {
	for name, taken := range map[string]bool{"resumed": false, "lost": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				cfg := config()
				cfg.HoldThroughOutage = true
				c, wire := w.client(cfg)
				lock := w.acquire(c, "job")
				wire.setFault(out)
				elapse(30 * time.Second)
				grant, err := lock.Detach()
				if err != nil {
					t.Fatal(err)
				}
				other, _ := w.client(config())
				if taken {
					w.release(w.acquire(other, "job"))
				}
				resumed, err := other.Resume(t.Context(), grant)
				if taken != errors.Is(err, leasehold.ErrLost) || taken == (err == nil) {
					t.Errorf("resumed: %v", err)
				}
				if err == nil {
					w.release(resumed)
				}
			})
		})
	}
}

func TestManyLocksAreHeldThroughAnOutage(t *testing.T) {
	for name, fault := range map[string]func(context.Context, call, func() (*http.Response, error)) (*http.Response, error){
		"all is throttled": throttled,
		"errors are slow": func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
			time.Sleep(time.Second)
			return out(ctx, c, next)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				cfg := config()
				cfg.HoldThroughOutage = true
				c, wire := w.client(cfg)
				locks := w.acquireMany(c, "job", 1000)
				wire.setFault(fault)
				elapse(time.Minute)
				if n := lost(locks); n > 0 {
					t.Errorf("%d of %d locks lost", n, len(locks))
				}
				wire.setFault(nil)
				elapse(20 * time.Second) // the pace recovers
				if s := c.Stats(); s.Held != len(locks) || s.MinRemaining < 10*time.Second {
					t.Errorf("after the outage: %+v", s)
				}
				_ = c.Close(t.Context())
			})
		})
	}
}
