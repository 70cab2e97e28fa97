package semaphore_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/semaphore"
)

func TestProcessesThatCountDifferentlyAreTold(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		w.Release(takePermit(w, newSemaphore(w, c, "gpu", 3)))
		wire.Sent()
		for _, opts := range [][]leasehold.AcquireOption{nil, {leasehold.NoWait()}} {
			_, err := newSemaphore(w, c, "gpu", 4).Acquire(t.Context(), opts...)
			if !errors.Is(err, leasehold.ErrPermits) {
				t.Fatalf("error %v", err)
			}
			for _, want := range []string{"gpu", "locks", "3", "4", "Resize"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %s", err, want)
				}
			}
		}
		if got := strings.Join(lab.Ops(wire.Sent()), " "); got != "GetItem GetItem" {
			t.Errorf("requests %s", got)
		}
	})
}

func TestASemaphoreFollowsAResize(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		b, _ := w.Client(lab.Config())
		ours, theirs := newSemaphore(w, a, "gpu", 1), newSemaphore(w, b, "gpu", 1)
		w.Release(takePermit(w, ours))
		w.Release(takePermit(w, theirs))
		resizeTo(w, theirs, 3)
		takePermit(w, ours) // whose confirmation tells it
		takePermit(w, ours, leasehold.NoWait())
		takePermit(w, ours, leasehold.NoWait())
		if _, err := ours.TryAcquire(t.Context()); !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("a fourth: %v", err)
		}
		if _, err := newSemaphore(w, a, "gpu", 1).Acquire(t.Context()); !errors.Is(err, leasehold.ErrPermits) {
			t.Errorf("a new one that counts as before: %v", err)
		}
		_ = a.Close(t.Context())
	})
}

func TestTheFirstAcquireFollowsAResizeOfItsOwnSemaphoreMeanwhile(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		s := newSemaphore(w, c, "gpu", 3)
		wire.SetFault(lab.Once(touches, lab.Slow(2*time.Second)))
		granted := make(chan error, 1)
		go func() {
			_, err := s.Acquire(t.Context())
			granted <- err
		}()
		lab.Elapse(time.Second)
		resizeTo(w, s, 5)
		if err := <-granted; err != nil {
			t.Errorf("of 3, and now 5: %v", err)
		}
		closed(t, c)
	})
}

func TestAPermitThatAResizeHasTakenAwayIsGivenBack(t *testing.T) {
	for name, opts := range map[string][]leasehold.AcquireOption{"renewed": nil, "by hand": {leasehold.WithoutRenewal()}} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				a, _ := w.Client(lab.Config())
				b, wire := w.Client(lab.Config())
				holder := newSemaphore(w, a, "gpu", 2)
				held := takePermits(w, holder, 2)
				waiter := newSemaphore(w, b, "gpu", 2)
				granted := mustWait(w, waiter, opts...)
				// As if it were told of it by its grant alone.
				var row int
				wire.SetFault(func(r *lab.Request) (*http.Response, error) {
					if r.Op == "GetItem" && row == 0 {
						row++
						resizeTo(w, holder, 1)
					}
					return r.Send()
				})
				w.Release(held["gpu/1"])
				lab.Elapse(10 * time.Second)
				select {
				case lock := <-granted:
					t.Fatalf("%v granted", lock.Key())
				default:
				}
				if got := w.HeldAmong(leasehold.Keys("gpu/0", "gpu/1")); !slices.Equal(got, []string{"gpu/0"}) || row != 1 {
					t.Errorf("held %v, row read: %d", got, row)
				}
				w.Release(held["gpu/0"])
				if lock := <-granted; lock.Key().Partition != "gpu/0" {
					t.Errorf("%v granted", lock.Key())
				}
				_ = b.Close(t.Context())
			})
		})
	}
}

func TestHoldersAboveNKeepTheirPermitsAndAreShown(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		s := newSemaphore(w, c, "gpu", 3)
		held := takePermits(w, s, 3)
		resizeTo(w, s, 1)
		lab.Elapse(time.Minute)
		for key, lock := range held {
			if err := lock.Err(); err != nil {
				t.Errorf("%s: %v", key, err)
			}
		}
		w.Release(held["gpu/1"])
		// Whoever has never acquired is shown the same.
		for name, s := range map[string]*semaphore.Semaphore{"who resized": s, "a new one": newSemaphore(w, c, "gpu", 1), "who counts differently": newSemaphore(w, c, "gpu", 7)} {
			wire.Sent()
			holders, err := s.Holders(t.Context())
			var keys []string
			for _, r := range holders {
				keys = append(keys, r.Key.Partition)
			}
			if err != nil || !slices.Equal(keys, []string{"gpu/0", "gpu/2"}) || holders[0].Owner == "" {
				t.Errorf("%s: %v, error %v", name, keys, err)
			}
			if got := strings.Join(lab.Ops(wire.Sent()), " "); got != "GetItem BatchGetItem" {
				t.Errorf("%s: requests %s", name, got)
			}
		}
		_ = c.Close(t.Context())
	})
}

func TestAWaiterLearnsOfMorePermits(t *testing.T) {
	for name, here := range map[string]bool{"by the same Semaphore": true, "by another process": false} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				a, _ := w.Client(lab.Config())
				b, _ := w.Client(lab.Config())
				holder, waiter := newSemaphore(w, a, "gpu", 1), newSemaphore(w, b, "gpu", 1)
				takePermit(w, holder)
				granted := mustWait(w, waiter)
				lab.Elapse(30 * time.Second)
				began := time.Now()
				most := 20*500*time.Millisecond + time.Second
				if here {
					resizeTo(w, waiter, 2)
					most = 100 * time.Millisecond
				} else {
					resizeTo(w, holder, 2)
				}
				var lock *leasehold.Lock
				select {
				case lock = <-granted:
				case <-time.After(time.Minute):
					t.Fatal("not granted")
				}
				if took := time.Since(began); took > most || lock.Key().Partition != "gpu/1" {
					t.Errorf("%v granted after %v", lock.Key(), took)
				}
				_, _ = a.Close(t.Context()), b.Close(t.Context())
			})
		})
	}
}

func TestWhoNeverWaitsForLongLearnsOfMorePermits(t *testing.T) {
	for name, call := range map[string]func(context.Context, *semaphore.Semaphore) (*leasehold.Lock, error){
		"trying": func(ctx context.Context, s *semaphore.Semaphore) (*leasehold.Lock, error) { return s.TryAcquire(ctx) },
		"waiting a second": func(ctx context.Context, s *semaphore.Semaphore) (*leasehold.Lock, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			return s.Acquire(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				a, _ := w.Client(lab.Config())
				b, _ := w.Client(lab.Config())
				holder, trying := newSemaphore(w, a, "gpu", 1), newSemaphore(w, b, "gpu", 1)
				w.Release(takePermit(w, trying))
				takePermit(w, holder)
				if _, err := call(t.Context(), trying); err == nil {
					t.Fatal("granted a second of one")
				}
				resizeTo(w, holder, 2)
				began := time.Now()
				for {
					lock, err := call(t.Context(), trying)
					if err == nil {
						w.Release(lock)
						break
					}
					if time.Since(began) > 20*500*time.Millisecond {
						t.Errorf("after %v: %v", time.Since(began), err)
						break
					}
					lab.Elapse(time.Second)
				}
				closed(t, a, b)
			})
		})
	}
}

func TestAContextThatHoldsAllPermitsLearnsOfMore(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		b, _ := w.Client(lab.Config())
		ours, theirs := newSemaphore(w, a, "gpu", 1), newSemaphore(w, b, "gpu", 1)
		one := takePermit(w, ours)
		resizeTo(w, theirs, 2)
		lab.Elapse(time.Minute)
		if _, err := ours.Acquire(one.Context()); err != nil {
			t.Errorf("one of two is held: %v", err)
		}
		closed(t, a, b)
	})
}

func TestALateReplyDoesNotUndoAResize(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		s := newSemaphore(w, c, "gpu", 100)
		w.Release(takePermit(w, s))
		wire.SetFault(lab.Once(func(c lab.Call) bool { return c.Op == "GetItem" }, lab.Slow(2*time.Second)))
		granted := make(chan *leasehold.Lock)
		go func() { granted <- takePermit(w, s) }()
		lab.Elapse(time.Second)
		resizeTo(w, s, 1)
		<-granted
		records := len(w.Scan())
		_, _ = s.TryAcquire(t.Context()) // of one permit, which may be held
		if now := len(w.Scan()); now > records+1 || now == records+1 && w.Item("gpu/0") == nil {
			t.Errorf("another permit was tried than that which there is: %d records, %d before", now, records)
		}
		closed(t, c)
	})
}

// A grant that looks at the row while the resize is under way still finds the old number.
func TestWhoHasResizedKnowsTheNewNumber(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		s := newSemaphore(w, c, "gpu", 1)
		w.Release(takePermit(w, s))
		wire.SetFault(lab.Once(func(c lab.Call) bool { return c.Op == "UpdateItem" && touches(c) }, func(r *lab.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			return r.Send()
		}))
		resized := make(chan error, 1)
		go func() { resized <- s.Resize(t.Context(), 3) }()
		lab.Elapse(500 * time.Millisecond)
		takePermit(w, s)
		if err := <-resized; err != nil {
			t.Fatal(err)
		}
		if n := len(s.Keys()); n != 3 {
			t.Errorf("%d permits after a resize to 3", n)
		}
		takePermit(w, s, leasehold.NoWait())
		closed(t, c)
	})
}

// What ended the wait is said also if a resize had ended it a moment before: with
// WithoutRenewal a wait that has ended lasts until its last request is answered.
func TestAWaitThatEndsWithAResizeSaysWhyItEnded(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		var gaveUp atomic.Int32
		cfg := lab.Config()
		cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
			if e.Kind == leasehold.EventGaveUp {
				gaveUp.Add(1)
			}
		}
		b, wire := w.Client(cfg)
		holder, waiter := newSemaphore(w, a, "gpu", 2), newSemaphore(w, b, "gpu", 2)
		takePermits(w, holder, 2)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		ended := make(chan error, 1)
		go func() {
			_, err := waiter.Acquire(ctx, leasehold.WithoutRenewal())
			ended <- err
		}()
		lab.Elapse(9 * time.Second)
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Op == "BatchGetItem" {
				time.Sleep(1500 * time.Millisecond)
			}
			return r.Send()
		})
		lab.Elapse(900 * time.Millisecond)
		resizeTo(w, waiter, 1)
		if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if got := gaveUp.Load(); got != 1 {
			t.Errorf("%d events of a wait that was given up", got)
		}
		closed(t, a, b)
	})
}

func TestAWaiterReadsTheNumberOfPermitsOnceInTenPolls(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		b, wire := w.Client(lab.Config())
		takePermit(w, newSemaphore(w, a, "gpu", 1))
		_ = mustWait(w, newSemaphore(w, b, "gpu", 1))
		wire.Sent()
		lab.Elapse(2 * time.Minute)
		reads := lab.Count(wire.Sent(), func(c lab.Call) bool { return c.Op == "GetItem" && slices.Contains(c.Keys(), "gpu") })
		if reads < 16 || reads > 48 { // each 2.5 s to 7.5 s
			t.Errorf("%d reads in two minutes", reads)
		}
		_, _ = b.Close(t.Context()), a.Close(t.Context())
	})
}

func TestWhoGivesUpOnAResizeUnderWayIsToldWhatWasWrongWithTheAttemptsBefore(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		s := newSemaphore(w, c, "gpu", 3)
		began := time.Now()
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Op != "UpdateItem" {
				return r.Send()
			}
			if time.Since(began) > 2*time.Second {
				time.Sleep(5 * time.Second) // longer than the rest of the time
			}
			return lab.Refusal(400, "ThrottlingException"), nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		err := s.Resize(ctx, 5)
		if !errors.Is(err, leasehold.ErrUnknownOutcome) || !strings.Contains(err.Error(), "throttled: raise the table's capacity") {
			t.Errorf("error %v after %v", err, time.Since(began))
		}
		closed(t, c)
	})
}

func TestAResizeThatEndsWhileItReadsIsKnownNotToHaveHappened(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		s := newSemaphore(w, c, "gpu", 3)
		wire.SetFault(lab.Slow(2 * time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Resize(ctx, 5); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("error %v", err)
		}
		closed(t, c)
	})
}

func TestAResizeGoesOnWhenAnotherWasFirst(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, wire := w.Client(lab.Config())
		b, _ := w.Client(lab.Config())
		ours, theirs := newSemaphore(w, a, "gpu", 3), newSemaphore(w, b, "gpu", 3)
		resizeTo(w, ours, 3) // creates the row
		wire.SetFault(lab.Once(func(c lab.Call) bool { return c.Op == "UpdateItem" }, func(r *lab.Request) (*http.Response, error) {
			resizeTo(w, theirs, 50)
			return r.Send()
		}))
		resizeTo(w, ours, 7)
		if item := w.Item("gpu"); lab.Number(item, "permits") != "7" || lab.Number(item, "most") != "50" {
			t.Errorf("stored %v", item)
		}
	})
}
