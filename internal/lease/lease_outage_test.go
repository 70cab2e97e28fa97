package lease_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
)

func reset(*lab.Request) (*http.Response, error) {
	return nil, lab.ErrReset
}

// heldThroughOutage returns a lock with HoldThroughOutage, and its client's wire, on which
// an outage has just begun.
func heldThroughOutage(w *lab.World) (*leasehold.Lock, *lab.Wire) {
	w.T.Helper()
	c, wire := w.Client(lab.OutageConfig())
	lock := w.Acquire(c, "job")
	wire.SetFault(lab.Out)
	return lock, wire
}

func TestLockIsHeldThroughOutageOnlyIfConfigured(t *testing.T) { // awslabs has the same option: hold the lock on service unavailable
	for name, hold := range map[string]bool{"on request": true, "by default": false} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.ConfigOf("locks", layout.AWSLabs{HoldThroughOutage: hold}))
				lock := w.Acquire(c, "job")
				wire.SetFault(lab.Out)
				lab.Elapse(5 * time.Minute)
				if err := lock.Err(); hold != (err == nil) {
					t.Fatalf("after five minutes: %v", err)
				}
				wire.SetFault(nil)
				lab.Elapse(10 * time.Second)
				if hold && time.Until(lock.TrustedUntil()) < 10*time.Second {
					t.Errorf("not renewed after the outage: trusted until %v", lock.TrustedUntil())
				}
				_ = lock.Release(t.Context())
			})
		})
	}
}

func TestLockGrantedToAnotherDuringOutageIsLost(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.OutageConfig())
		lock := w.Acquire(c, "job")
		wire.SetFault(lab.Out) // only this process is affected by the outage
		other, _ := w.Client(lab.OutageConfig())
		theirs := w.Acquire(other, "job")
		if err := lock.Err(); err != nil {
			t.Fatalf("not held on to: %v", err)
		}
		wire.SetFault(nil)
		lab.Elapse(10 * time.Second)
		var lost *leasehold.LostError
		if !errors.As(lock.Err(), &lost) || lost.Reason != leasehold.LostReplaced {
			t.Errorf("after the outage: %v", lock.Err())
		}
		w.Release(theirs)
	})
}

func TestReleaseAfterOutageDoesNotReportSuccess(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		lock, wire := heldThroughOutage(w)
		other, _ := w.Client(lab.OutageConfig())
		theirs := w.Acquire(other, "job")
		wire.SetFault(lab.Once(lab.Call.Releases, reset))
		if err := lock.Release(t.Context()); err == nil {
			t.Error("nil, though the lease had run out and another was granted the key")
		}
		w.Release(theirs)
	})
}

func TestMissingRepliesDoNotCountAsOutage(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		lock, wire := heldThroughOutage(w)
		lab.Elapse(30 * time.Second)
		if err := lock.Err(); err != nil {
			t.Fatal(err)
		}
		wire.SetFault(reset)
		lab.Elapse(10 * time.Second)
		if err := lock.Err(); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("no reply at all: %v", err)
		}
	})
}

func TestReleaseOfLockTakenOverInOutageReportsError(t *testing.T) {
	for name, free := range map[string]func(ctx context.Context, g *leasehold.Group) (commit, release error){
		"a release of all": func(ctx context.Context, g *leasehold.Group) (error, error) {
			return nil, g.Release(ctx)
		},
		"a commit of one": func(ctx context.Context, g *leasehold.Group) (error, error) {
			return g.Locks()[0].CommitAndRelease(ctx, lab.Writes(lab.Note("a", "1"))), g.Locks()[0].Release(ctx)
		},
		"a commit of all": func(ctx context.Context, g *leasehold.Group) (error, error) {
			return g.CommitAndRelease(ctx, lab.Writes(lab.Note("a", "1"))), g.Release(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Work().Client(lab.OutageConfig())
				g := w.AcquireAll(c, leasehold.Keys("x", "y"))
				wire.SetFault(lab.Out) // only this process is affected by the outage
				other, _ := w.Client(lab.OutageConfig())
				theirs := w.AcquireAll(other, leasehold.Keys("x", "y"))
				if err := g.Err(); err != nil {
					t.Fatalf("not held on to: %v", err)
				}
				var sent atomic.Int64
				wire.SetFault(func(r *lab.Request) (*http.Response, error) {
					if sent.Add(1) <= 3 { // the first three requests are neither delivered nor answered
						return nil, lab.ErrReset
					}
					return r.Send()
				})
				commit, release := free(t.Context(), g)
				if name != "a release of all" && commit == nil || release == nil {
					t.Errorf("commit: %v, release: %v, though another was granted the keys", commit, release)
				}
				w.WantLog()
				if err := theirs.Release(t.Context()); err != nil {
					t.Error(err)
				}
				_ = c.Close(t.Context())
			})
		})
	}
}

func TestCommitAndReleaseSucceedsAfterOutageWithoutNewGrant(t *testing.T) {
	for name, commit := range map[string]func(ctx context.Context, g *leasehold.Group) error{
		"of one": func(ctx context.Context, g *leasehold.Group) error {
			return g.Locks()[0].CommitAndRelease(ctx, lab.Writes(lab.Note("a", "1")))
		},
		"of all": func(ctx context.Context, g *leasehold.Group) error {
			return g.CommitAndRelease(ctx, lab.Writes(lab.Note("a", "1")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Work().Client(lab.OutageConfig())
				g := w.AcquireAll(c, leasehold.Keys("x", "y"))
				wire.SetFault(lab.Out)
				lab.Elapse(time.Minute)
				wire.SetFault(nil)
				if err := commit(t.Context(), g); err != nil {
					t.Errorf("commit: %v", err)
				}
				w.WantLog("1")
				_ = g.Release(t.Context())
			})
		})
	}
}

func TestLockDetachedInAnOutageIsResumedOrLost(t *testing.T) {
	for name, taken := range map[string]bool{"resumed": false, "lost": true} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.OutageConfig())
				lock := w.Acquire(c, "job")
				wire.SetFault(lab.Out)
				lab.Elapse(30 * time.Second)
				grant := w.Detach(lock)
				other, _ := w.Client(lab.OutageConfig())
				if taken {
					w.Release(w.Acquire(other, "job"))
				}
				resumed, err := other.Resume(t.Context(), grant)
				if taken != errors.Is(err, leasehold.ErrLost) || taken == (err == nil) {
					t.Errorf("resumed: %v", err)
				}
				if err == nil {
					w.Release(resumed)
				}
			})
		})
	}
}

func TestManyLocksSurviveOutage(t *testing.T) {
	for name, fault := range map[string]lab.Fault{
		"all is throttled": lab.Throttled,
		"errors are slow": func(r *lab.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			return lab.Out(r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.OutageConfig())
				locks := w.AcquireMany(c, "job", lab.Crowd())
				wire.SetFault(fault)
				lab.Elapse(time.Minute)
				if n := lab.Lost(locks); n > 0 {
					t.Errorf("%d of %d locks lost", n, len(locks))
				}
				wire.SetFault(nil)
				lab.Elapse(20 * time.Second) // time for the pace of renewals to recover
				if s := c.Stats(); s.Held != len(locks) || s.MinRemaining < 10*time.Second {
					t.Errorf("after the outage: %+v", s)
				}
				_ = c.Close(t.Context())
			})
		})
	}
}

func TestPausedProcessDoesNotHoldThroughAnOutage(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		k := &lab.Jumps{}
		c, wire := w.Client(lab.OutageConfig(), k.Edit)
		lock := w.Acquire(c, "job")
		wire.SetFault(lab.Out)
		lab.Elapse(time.Minute)
		if err := lock.Err(); err != nil {
			t.Fatalf("not held on to: %v", err)
		}
		k.Boot.Store(int64(21 * time.Second)) // the machine was suspended; since then the process has received no report of an outage
		if err := lock.Err(); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("believed in after a pause longer than a lease: %v", err)
		}
		_ = lock.Release(t.Context())
	})
}

// renewalsOut answers each renewal as DynamoDB does in an outage.
func renewalsOut(r *lab.Request) (*http.Response, error) {
	if r.Renews() {
		return lab.Out(r)
	}
	return r.Send()
}

// A client that the outage does not affect may be granted the key. The holder's own client
// must not be granted the key, because it knows that it holds the lock.
func TestClientDoesNotTakeOverOwnLockDuringOutage(t *testing.T) {
	type wait = func(context.Context) (*leasehold.Lock, error)
	for name, hold := range map[string]func(t *testing.T, c *leasehold.Client, outage func()) (held *leasehold.Lock, next wait){
		"a lock that was resumed": func(t *testing.T, c *leasehold.Client, outage func()) (*leasehold.Lock, wait) {
			lock, err := c.Acquire(t.Context(), "job")
			if err != nil {
				t.Fatal(err)
			}
			g, err := lock.Detach()
			if err != nil {
				t.Fatal(err)
			}
			ctx, leave := context.WithCancel(t.Context())
			type result struct {
				lock *leasehold.Lock
				err  error
			}
			ended := make(chan result, 1)
			go func() {
				lock, err := c.Acquire(ctx, "job")
				ended <- result{lock, err}
			}()
			synctest.Wait() // wait until the goroutine has the key's turn
			if lock, err = c.Resume(t.Context(), g); err != nil {
				t.Fatal(err)
			}
			outage()
			return lock, func(ctx context.Context) (*leasehold.Lock, error) {
				defer context.AfterFunc(ctx, leave)()
				r := <-ended
				return r.lock, r.err
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.OutageConfig())
				lock, next := hold(t, c, func() { wire.SetFault(renewalsOut) })
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				if second, err := next(ctx); err == nil {
					t.Errorf("granted with token %d, and %d is trusted: %v", second.Token(), lock.Token(), lock.Err())
				}
				wire.SetFault(nil)
				lab.Elapse(10 * time.Second)
				if err := lock.Err(); err != nil {
					t.Errorf("after the outage: %v", err)
				}
				w.Release(lock)
			})
		})
	}
}
