package leasehold_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
)

// noTouch hangs every renewal of a lock's own record, and lets its session's pass.
func noTouch(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
	if c.renews() && !c.renewsSession() {
		return hang(ctx)
	}
	return next()
}

// patient looks at records that stand still for hours in few steps.
func patient(cfg leasehold.Config) leasehold.Config {
	cfg.PollMin, cfg.PollMax = time.Minute, time.Minute
	return cfg
}

func TestALockWhoseRecordStoodStillIsNotTakenOverWhileItsSessionLives(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		holder, wire := w.client(sharedConfig())
		lock := w.acquire(holder, "job")
		wire.setFault(noTouch)
		began := time.Now()
		for name, acquire := range map[string]func(ctx context.Context, c *leasehold.Client) (*leasehold.Lock, error){
			"Acquire": func(ctx context.Context, c *leasehold.Client) (*leasehold.Lock, error) { return c.Acquire(ctx, "job") },
			"AcquireAny": func(ctx context.Context, c *leasehold.Client) (*leasehold.Lock, error) {
				return c.AcquireAny(ctx, leasehold.Keys("job"))
			},
			"AcquireAll": func(ctx context.Context, c *leasehold.Client) (*leasehold.Lock, error) {
				group, err := c.AcquireAll(ctx, leasehold.Keys("job", "other"))
				if err != nil {
					return nil, err
				}
				return group.Locks()[0], nil
			},
		} {
			waiter, _ := w.client(patient(config()))
			ctx, cancel := context.WithTimeout(t.Context(), 70*time.Minute)
			if got, err := acquire(ctx, waiter); !errors.Is(err, leasehold.ErrHeld) {
				t.Errorf("%s after %v: %v, %v", name, time.Since(began), got, err)
			}
			cancel()
			if err := lock.Err(); err != nil {
				t.Fatalf("%v after the grant: %v", time.Since(began), err)
			}
		}
		w.release(lock)
		_ = holder.Close(t.Context())
	})
}

func TestATouchThatFailedForHoursIsMadeUpForAndTellsOfABreak(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(sharedConfig())
		lock := w.acquire(c, "job")
		before := textOf(w.item("job"), "recordVersionNumber")
		wire.setFault(noTouch)
		elapse(3 * time.Hour)
		wire.setFault(nil)
		elapse(10 * time.Second)
		if textOf(w.item("job"), "recordVersionNumber") == before || lock.Err() != nil {
			t.Errorf("not touched since: %v", lock.Err())
		}
		if err := lock.Renew(t.Context(), leasehold.WithData([]byte("x"))); err != nil || string(lock.Data()) != "x" {
			t.Errorf("renew: %v, data %q", err, lock.Data())
		}
		other, _ := w.client(config())
		if err := other.Break(t.Context(), lock.Record()); err != nil {
			t.Fatal(err)
		}
		elapse(20 * time.Minute)
		var lost *leasehold.LostError
		if err := lock.Err(); !errors.As(err, &lost) || lost.Reason != leasehold.LostBroken {
			t.Errorf("after a break: %v", err)
		}
		_ = c.Close(t.Context())
	})
}

func TestALockIsTakenOverWithItsSessionHoweverFreshItsRecordIs(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		holder, wire := w.client(sharedConfig())
		lock := w.acquire(holder, "job")
		if err := lock.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		wire.setFault(func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
			if c.renewsSession() {
				return hang(ctx)
			}
			return next()
		})
		elapse(17 * time.Second)
		if err := lock.Renew(t.Context()); err != nil { // which is trusted for no longer by that
			t.Fatal(err)
		}
		elapse(2 * time.Second)
		if !errors.Is(lock.Err(), leasehold.ErrLost) {
			t.Errorf("believed in by its own record: %v", lock.Err())
		}
		waiter, _ := w.client(config())
		began := time.Now()
		next := w.acquire(waiter, "job")
		if took := time.Since(began); took > 22*time.Second {
			t.Errorf("taken over after %v", took)
		}
		w.release(next)
		wire.setFault(nil)
		_ = holder.Close(t.Context())
	})
}

func TestAnUnsettledAttemptUnderASessionThatLandsLateIsUndone(t *testing.T) {
	for name, late := range map[string]time.Duration{"soon": 8 * time.Second, "in minutes": 10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				c, wire := w.client(sharedConfig())
				w.acquire(c, "other")
				wire.setFault(once(call.grants, delayed(late)))
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
				defer cancel()
				if _, err := c.Acquire(ctx, "job"); err == nil {
					t.Fatal("granted without a reply")
				}
				elapse(late)
				if item := w.item("job"); item == nil || textOf(item, "isReleased") != "" {
					t.Fatalf("nothing has landed: %v", item)
				}
				waiter, _ := w.client(config())
				began := time.Now()
				ctx, cancel = context.WithTimeout(t.Context(), 3*time.Hour)
				defer cancel()
				lock, err := waiter.Acquire(ctx, "job")
				if took := time.Since(began); err != nil || took > 2*time.Minute+5*time.Second {
					t.Fatalf("granted after %v: %v", took, err)
				}
				elapse(time.Hour)
				if err := lock.Err(); err != nil {
					t.Error(err)
				}
				w.release(lock)
				wire.sent()
				elapse(time.Minute)
				for _, sent := range wire.sent() {
					if !sent.renewsSession() && !sent.renews() {
						t.Errorf("still looked for an hour later: %s", sent.op)
					}
				}
				_ = c.Close(t.Context())
			})
		})
	}
}

func TestAKeyWithManyUnsettledAttemptsIsLookedAfterOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(sharedConfig())
		w.acquire(c, "other")
		wire.setFault(func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
			if c.grants() {
				return hang(ctx)
			}
			return next()
		})
		for range 100 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			if _, err := c.Acquire(ctx, "job"); err == nil {
				t.Fatal("granted without a network")
			}
			cancel()
			elapse(4 * time.Second) // what hangs is given up
		}
		wire.setFault(nil)
		wire.sent()
		elapse(time.Minute)
		looks := 0
		for _, sent := range wire.sent() {
			if sent.op == "GetItem" {
				looks++
			}
		}
		if looks == 0 || looks > 5 {
			t.Errorf("%d looks in a minute", looks)
		}
		_ = c.Close(t.Context())
	})
}

func TestALeaderWhoseRecordStoodStillLeadsWhileItsSessionLives(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		e, _, wire := w.elects(sharedConfig())
		watching, _, _ := w.elects(patient(config()))
		term := w.campaign(e, "a")
		o := observe(t, watching)
		o.shows(leaderOf(term, "a"))
		wire.setFault(noTouch)
		elapse(3 * time.Hour)
		o.shows()
		if err := term.Err(); err != nil {
			t.Error(err)
		}
		_ = o.end()
		w.release(term)
	})
}
