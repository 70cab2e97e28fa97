package semaphore_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/semaphore"
)

func TestATryForAPermitSaysThatAllAreHeld(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		b, wire := w.Client(lab.Config())
		takePermits(w, newSemaphore(w, a, "gpu", 3), 3)
		s := newSemaphore(w, b, "gpu", 3)
		_, err := s.TryAcquire(t.Context())
		var held *leasehold.HeldError
		if !errors.As(err, &held) || held.Holder.Grant == "" || !strings.Contains(err.Error(), "all 3 permits of gpu are held") {
			t.Errorf("error %v", err)
		}
		// Not answered, it gives up.
		wire.SetFault(func(*lab.Request) (*http.Response, error) {
			return lab.Refusal(400, "ThrottlingException"), nil
		})
		for name, s := range map[string]*semaphore.Semaphore{"agreed": s, "new": newSemaphore(w, b, "gpu", 3)} {
			began := time.Now()
			_, err := s.TryAcquire(t.Context())
			var op *leasehold.OpError
			if took := time.Since(began); !errors.As(err, &op) || took < 9*time.Second || took > 20*time.Second {
				t.Errorf("%s: after %v: %v", name, took, err)
			}
		}
		_ = a.Close(t.Context())
	})
}

func TestOnePermitIsNotSpokenOfAsSeveral(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		b, _ := w.Client(lab.Config())
		takePermit(w, newSemaphore(w, a, "gpu", 1))
		_, held := newSemaphore(w, b, "gpu", 1).TryAcquire(t.Context())
		_, counted := newSemaphore(w, b, "gpu", 2).TryAcquire(t.Context())
		if !errors.Is(held, leasehold.ErrHeld) || !errors.Is(counted, leasehold.ErrPermits) {
			t.Fatal(held, counted)
		}
		for _, err := range []error{held, counted} {
			if strings.Contains(err.Error(), "1 permits") {
				t.Error(err)
			}
		}
		_ = a.Close(t.Context())
	})
}

// A grant that is not confirmed is given back, however the confirmation fails.
func TestAPermitThatCannotBeConfirmedIsGivenBack(t *testing.T) {
	for name, c := range map[string]struct {
		opts  []leasehold.AcquireOption
		fault lab.Fault
		is    error
	}{
		"the wait ends":  {nil, lab.Cut, context.DeadlineExceeded},
		"a try gives up": {[]leasehold.AcquireOption{leasehold.NoWait()}, func(*lab.Request) (*http.Response, error) { return nil, lab.ErrReset }, lab.ErrReset},
		"it is refused":  {nil, func(*lab.Request) (*http.Response, error) { return lab.Refusal(400, "AccessDeniedException"), nil }, nil},
		"by hand":        {[]leasehold.AcquireOption{leasehold.WithoutRenewal()}, lab.Cut, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				client, wire := w.Client(lab.Config())
				s := newSemaphore(w, client, "gpu", 1)
				w.Release(takePermit(w, s))
				wire.SetFault(func(r *lab.Request) (*http.Response, error) {
					if r.Op == "GetItem" {
						return c.fault(r)
					}
					return r.Send()
				})
				ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
				defer cancel()
				_, err := s.Acquire(ctx, c.opts...)
				if err == nil || c.is != nil && !errors.Is(err, c.is) {
					t.Errorf("error %v", err)
				}
				if held := w.HeldAmong(leasehold.Keys("gpu/0")); len(held) > 0 || len(client.Held()) > 0 {
					t.Errorf("left held: %v", held)
				}
			})
		})
	}
}

func TestAPermitLostBeforeItIsConfirmedIsSoughtAgain(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		s := newSemaphore(w, c, "gpu", 1)
		w.Release(takePermit(w, s))
		wire.SetFault(lab.Once(func(c lab.Call) bool { return c.Op == "GetItem" }, func(req *lab.Request) (*http.Response, error) {
			for r, err := range c.List(req.Context()) {
				if err != nil || c.Break(req.Context(), r) != nil {
					t.Error("not broken")
				}
			}
			_ = c.Held()[0].Renew(req.Context()) // which tells it
			return lab.Cut(req)
		}))
		lock := takePermit(w, s)
		if err := lock.Err(); err != nil {
			t.Error(err)
		}
		w.Release(lock)
	})
}

func TestWithoutRenewalAPermitLeavesNothingInTheBackground(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		b, wire := w.Client(lab.Config())
		s := newSemaphore(w, b, "gpu", 1)
		lock := takePermit(w, s, leasehold.WithoutRenewal())
		w.Release(lock)
		takePermit(w, newSemaphore(w, a, "gpu", 1))
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if _, err := s.Acquire(ctx, leasehold.WithoutRenewal()); !errors.Is(err, leasehold.ErrHeld) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		wire.Sent()
		lab.Elapse(time.Minute)
		if n := len(wire.Sent()); n != 0 {
			t.Errorf("%d requests after it returned", n)
		}
		_ = a.Close(t.Context())
	})
}

func TestAContextThatHoldsAPermitGetsAnotherOrSharesIt(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		s := newSemaphore(w, c, "gpu", 2)
		held := takePermits(w, s, 2)
		outer := held["gpu/1"]
		w.Release(held["gpu/0"])
		second, err := s.Acquire(outer.Context())
		if err != nil || second.Key().Partition != "gpu/0" {
			t.Fatalf("%v, error %v", second, err)
		}
		if _, err := s.Acquire(second.Context()); !errors.Is(err, leasehold.ErrDeadlock) {
			t.Errorf("with both held by the context: %v", err)
		}
		w.Release(second)
		resizeTo(w, s, 1) // above n it is shared as well
		wire.Sent()
		shared, err := s.Acquire(outer.Context(), leasehold.Reentrant())
		if err != nil || shared.Token() != outer.Token() || len(wire.Sent()) != 0 {
			t.Fatalf("%v, error %v", shared, err)
		}
		w.Release(shared)
		if err := outer.Err(); err != nil {
			t.Error(err)
		}
		w.Release(outer)
		w.Release(takePermit(w, s, leasehold.Reentrant()))
	})
}

func TestAPermitOfADeadHolderIsTakenOver(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		dead, wire := w.Client(lab.Config())
		alive, _ := w.Client(lab.Config())
		takePermit(w, newSemaphore(w, dead, "gpu", 2))
		takePermit(w, newSemaphore(w, alive, "gpu", 2))
		wire.SetFault(lab.Cut)
		c, _ := w.Client(lab.Config())
		began := time.Now()
		lock := takePermit(w, newSemaphore(w, c, "gpu", 2))
		if took := time.Since(began); took < 20*time.Second || took > 20*time.Second+100*time.Millisecond {
			t.Errorf("granted after %v, a lease is 20s", took)
		}
		if _, over := lock.TookOver(); !over {
			t.Error("not taken over")
		}
		closed(t, c, alive)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_ = dead.Close(gone)
	})
}

func TestCloseEndsWhoWaitsForAPermit(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		b, wire := w.Client(lab.Config())
		takePermit(w, newSemaphore(w, a, "gpu", 1))
		for name, stuck := range map[string]func(lab.Call) bool{
			"agreeing":   func(c lab.Call) bool { return c.Op == "GetItem" && touches(c) },
			"waiting":    func(lab.Call) bool { return false },
			"confirming": func(c lab.Call) bool { return c.Op == "GetItem" },
		} {
			c, wire := w.Client(lab.Config())
			key := "gpu"
			if name == "confirming" {
				key = "free"
				resizeTo(w, newSemaphore(w, a, key, 1), 1)
			}
			s := newSemaphore(w, c, key, 1)
			if name == "confirming" {
				w.Release(takePermit(w, s))
			}
			wire.SetFault(func(r *lab.Request) (*http.Response, error) {
				if stuck(r.Call) {
					return lab.Cut(r)
				}
				return r.Send()
			})
			ended := make(chan error)
			go func() {
				_, err := s.Acquire(t.Context())
				ended <- err
			}()
			lab.Elapse(time.Second)
			closed(t, c)
			if err := <-ended; !errors.Is(err, leasehold.ErrClosed) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if held := w.HeldAmong(leasehold.Keys("free/0")); len(held) > 0 {
			t.Errorf("left held: %v", held)
		}
		closed(t, b)
		s := newSemaphore(w, b, "gpu", 1)
		_, acquire := s.Acquire(t.Context())
		_, holders := s.Holders(t.Context())
		for name, err := range map[string]error{"acquire": acquire, "holders": holders, "resize": s.Resize(t.Context(), 2)} {
			if !errors.Is(err, leasehold.ErrClosed) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n := len(wire.Sent()); n != 0 {
			t.Errorf("%d requests after Close", n)
		}
		closed(t, a)
	})
}
