package leasehold_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
)

func TestAWaiterForSeveralKeysLeavesTheFreeOnesToOthersOfItsClient(t *testing.T) {
	for name, elsewhere := range map[string]bool{"held by another goroutine": false, "held by another process": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				c, _ := w.client(config())
				holder := c
				if elsewhere {
					holder, _ = w.client(config())
				}
				b := w.acquire(holder, "b")
				granted := make(chan *leasehold.Group)
				go func() {
					g, err := c.AcquireAll(t.Context(), leasehold.Keys("a", "b", "c"))
					if err != nil {
						t.Error(err)
					}
					granted <- g
				}()
				for range 5 {
					elapse(time.Minute)
					for _, key := range []string{"a", "c"} {
						ctx, cancel := context.WithTimeout(t.Context(), time.Second)
						for _, opts := range [][]leasehold.AcquireOption{nil, {leasehold.NoWait()}} {
							if lock, err := c.Acquire(ctx, key, opts...); err != nil {
								t.Errorf("%s is free: %v", key, err)
							} else {
								w.release(lock)
							}
						}
						cancel()
					}
				}
				// One that is taken meanwhile is waited for in its turn.
				a := w.acquire(c, "a")
				w.release(b)
				elapse(time.Minute)
				w.release(w.acquire(c, "b"))
				began := time.Now()
				w.release(a)
				g := <-granted
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("all free, and granted after %v", took)
				}
				if err := g.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestAWaiterForSeveralKeysIsNotOvertakenForEver(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.client(config())
		ctx, cancel := context.WithCancel(t.Context())
		busy := func(key string) { // always in use, mostly by turns
			for ctx.Err() == nil {
				lock, err := c.Acquire(ctx, key)
				if err != nil {
					if !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					return
				}
				time.Sleep(300 * time.Millisecond)
				_ = lock.Release(t.Context())
			}
		}
		for _, key := range []string{"a", "a", "b", "b", "b", "c", "c"} {
			go busy(key)
		}
		elapse(time.Second)
		began := time.Now()
		g, err := c.AcquireAll(t.Context(), leasehold.Keys("a", "b", "c"))
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("granted after %v", took)
		}
		cancel()
		if err := g.Release(t.Context()); err != nil {
			t.Error(err)
		}
		elapse(time.Second)
		if n := len(c.Held()); n > 0 {
			t.Errorf("%d held in the end", n)
		}
	})
}

func TestWhoGivesUpOnSeveralKeysIsToldWhichGoroutineHeldOne(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.client(config())
		lock := w.acquire(c, "b")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := c.AcquireAll(ctx, leasehold.Keys("a", "b"))
		var held *leasehold.HeldError
		if !errors.As(err, &held) || held.Key != lock.Key() || held.Holder.Token != lock.Token() {
			t.Errorf("gave up with %v", err)
		}
		w.release(lock)
	})
}
