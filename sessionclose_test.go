package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
)

func TestCloseFreesAllLocksOfASessionInOneWrite(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(sharedConfig())
		for i := range 20 {
			w.acquire(c, fmt.Sprint("lock/", i))
		}
		wire.sent()
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if sent := wire.sent(); len(sent) != 1 {
			t.Errorf("%d requests", len(sent))
		}
		other, otherWire := w.client(config())
		for i := range 20 {
			lock, err := other.TryAcquire(t.Context(), fmt.Sprint("lock/", i))
			if err != nil {
				t.Fatal(err)
			}
			w.release(lock)
		}
		// Refused, then granted, then released; the session is looked at once.
		if sent := otherWire.sent(); len(sent) != 61 {
			t.Errorf("%d requests for 20 locks of a dead session", len(sent))
		}
	})
}

func TestCloseLeavesASessionWhoseFunctionHasNotReturned(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.client(sharedConfig())
		w.acquire(c, "free")
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			_ = c.Do(t.Context(), "busy", func(context.Context, *leasehold.Lock) error { <-stop; return nil })
		})
		elapse(0)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if err := c.Close(ctx); err == nil {
			t.Error("Close says nothing of the function that has not returned")
		}
		other, _ := w.client(config())
		lock, err := other.TryAcquire(t.Context(), "free")
		if err != nil {
			t.Errorf("what nobody uses any more: %v", err)
		} else {
			w.release(lock)
		}
		if _, err := other.TryAcquire(t.Context(), "busy"); !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("what is in use: %v", err)
		}
		close(stop)
		wg.Wait()
	})
}

func TestNoSessionIsBegunBehindClose(t *testing.T) {
	for name, limit := range map[string]time.Duration{"that waits for it": time.Minute, "that has no time": 0} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				cfg := sharedConfig()
				cfg.ReleaseGrace = time.Second
				c, wire := w.client(cfg)
				wire.setFault(once(call.grants, func(ctx context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
					time.Sleep(2 * time.Second) // on its way
					return next()
				}))
				refused := make(chan error, 1)
				go func() { refused <- second(c.Acquire(t.Context(), "job")) }()
				elapse(time.Millisecond)
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				_ = c.Close(ctx)
				if err := <-refused; !errors.Is(err, leasehold.ErrClosed) {
					t.Errorf("acquired: %v", err)
				}
				elapse(10 * time.Second)
				wire.sent()
				elapse(time.Minute)
				if n := len(wire.sent()); n != 0 {
					t.Errorf("%d requests of a client that is closed", n)
				}
				for _, row := range w.sessions() {
					if textOf(w.item(row), "dead") != "1" {
						t.Errorf("left behind: %v", w.item(row))
					}
				}
			})
		})
	}
}

func TestALockThatCloseFreedWithItsSessionIsReleased(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		released := 0
		cfg := sharedConfig()
		cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
			if e.Kind == leasehold.EventReleased {
				released++
			}
		}
		c, wire := w.client(cfg)
		lock := w.acquire(c, "job")
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		wire.sent()
		if err := lock.Release(t.Context()); err != nil { // a deferred one
			t.Errorf("released again: %v", err)
		}
		if n := len(wire.sent()); n != 0 || released != 1 {
			t.Errorf("%d requests after Close, %d releases reported", n, released)
		}
	})
}

func TestALockWhoseSessionCloseCouldNotEndIsNotCalledReleased(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var reported []error
		cfg := sharedConfig()
		cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
			if e.Kind == leasehold.EventReleased {
				reported = append(reported, e.Err)
			}
		}
		c, wire := w.client(cfg)
		lock := w.acquire(c, "job")
		wire.setFault(cut)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := c.Close(ctx); !errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("close: %v", err)
		}
		if len(reported) != 1 || !errors.Is(reported[0], leasehold.ErrUnknownOutcome) {
			t.Errorf("reported %v", reported)
		}
		wire.setFault(nil)
		if err := lock.Release(t.Context()); err != nil || textOf(w.item("job"), "isReleased") != "1" {
			t.Errorf("released again: %v, %v", err, w.item("job"))
		}
		elapse(5 * time.Second) // the last that Close has sent
	})
}

func TestCloseSaysNothingOfASessionThatWasLostBefore(t *testing.T) {
	for name, lose := range map[string]func(w *world, wire *wire){
		"deleted": func(w *world, _ *wire) { w.delete(w.sessions()[0]); elapse(10 * time.Second) },
		"expired": func(_ *world, wire *wire) { wire.setFault(cut); elapse(30 * time.Second); wire.setFault(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				c, wire := w.client(sharedConfig())
				lock := w.acquire(c, "job")
				lose(w, wire)
				if !errors.Is(lock.Err(), leasehold.ErrLost) {
					t.Fatalf("the lock: %v", lock.Err())
				}
				if err := c.Close(t.Context()); err != nil {
					t.Errorf("close: %v", err)
				}
			})
		})
	}
}
