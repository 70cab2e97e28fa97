package leasehold_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestAnAcquireWhoseReplyIsLostIsGrantedByItsNextRequest(t *testing.T) { // in all five peers it waits out its own lease
	for name, released := range map[string]bool{"a new record": false, "a kept one": true} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.Config())
				if released {
					w.Release(w.Acquire(c, "job"))
				}
				wire.Sent()
				wire.SetFault(lab.Once(lab.Call.Grants, lab.LoseReply))
				began := time.Now()
				lock := w.Acquire(c, "job")
				if sent := wire.Sent(); len(sent) != 2 || time.Since(began) > 200*time.Millisecond {
					t.Errorf("sent %v in %v", sent, time.Since(began))
				}
				if lock.Record().Version != lab.Text(w.Item("job"), "recordVersionNumber") {
					t.Error("the client does not hold what the record shows")
				}
				w.Release(lock)
			})
		})
	}
}

func TestAGrantWhoseReplyIsLostIsRecognised(t *testing.T) { // all five: an unsettled attempt, or a wait for one's own lease
	for name, fault := range map[string]lab.Fault{
		"reset after the write": lab.LoseReply,
		"a server error after the write": func(r *lab.Request) (*http.Response, error) {
			_, _ = r.Send()
			return lab.Refusal(500, "InternalServerError"), nil
		},
		"delivered twice, the second reply arrives": func(r *lab.Request) (*http.Response, error) {
			_, _ = r.Send()
			return r.Send()
		},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.Config())
				wire.SetFault(lab.Once(lab.Call.Grants, fault))
				began := time.Now()
				lock, err := c.TryAcquire(t.Context(), "job")
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took > time.Second {
					t.Errorf("took %v", took)
				}
				if lock.Record().Version != lab.Text(w.Item("job"), "recordVersionNumber") || lock.Token() != lock.Record().Token {
					t.Error("the holder does not hold what the record shows")
				}
				w.Release(lock)
			})
		})
	}
}

func TestNobodyElsesAttemptIsTakenForOnesOwn(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		b, wire := w.Client(lab.Config())
		lock := w.Acquire(a, "job")
		wire.SetFault(lab.Once(lab.Call.Grants, lab.LoseReply)) // it failed, unseen
		if _, err := b.TryAcquire(t.Context(), "job"); !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("error %v", err)
		}
		w.Release(lock)
	})
}

func TestALateDuplicateOfAGrantDoesNotGrantAgain(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		var duplicate func() (*http.Response, error)
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Grants() {
				duplicate = r.Send
			}
			return r.Send()
		})
		lock := w.Acquire(c, "job")
		w.Release(lock)
		before := w.Item("job")
		if _, err := duplicate(); err != nil {
			t.Fatal(err)
		}
		if after := w.Item("job"); lab.Text(after, "isReleased") != "1" || lab.Text(after, "recordVersionNumber") != lab.Text(before, "recordVersionNumber") {
			t.Errorf("the record shows %v", after)
		}
	})
}

func TestAGrantDeliveredTwiceIsOurOwn(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.Once(lab.Call.Grants, func(r *lab.Request) (*http.Response, error) {
			_, _ = r.Send()
			return r.Send() // refused: it shows the first
		}))
		sent := time.Now()
		lock := w.Acquire(c, "job")
		if n := len(wire.Sent()); n != 1 || !lock.TrustedUntil().Equal(sent.Add(18*time.Second)) {
			t.Errorf("%d requests, trusted until %v", n, lock.TrustedUntil())
		}
		w.Release(lock)
	})
}

func TestAGrantDeliveredTwiceIsReplacedWhenItsReplyComesLate(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.Once(lab.Call.Grants, func(r *lab.Request) (*http.Response, error) {
			_, _ = r.Send()
			time.Sleep(600 * time.Millisecond)
			return r.Send()
		}))
		began := time.Now()
		lock := w.Acquire(c, "job", leasehold.WithLease(time.Second), leasehold.WithoutRenewal())
		if left := time.Until(lock.TrustedUntil()); left < 800*time.Millisecond {
			t.Errorf("%v of trust left", left)
		}
		if took := time.Since(began); took > 700*time.Millisecond {
			t.Errorf("took %v", took)
		}
		w.Release(lock)
	})
}

func TestATakeoverDeliveredTwiceSaysWhomItTookOver(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, wire := w.Client(lab.Config())
		b, bwire := w.Client(lab.Config())
		dead := w.Acquire(a, "job")
		wire.SetFault(lab.Cut)
		n := 0
		bwire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Grants() {
				n++
				if n == 2 {
					_, _ = r.Send()
				}
			}
			return r.Send()
		})
		lock := w.Acquire(b, "job")
		if r, ok := lock.TookOver(); !ok || r.Token != dead.Token() {
			t.Errorf("took over %+v %v", r, ok)
		}
		w.Release(lock)
		_ = dead.Release(t.Context())
	})
}

func TestATakeoverWhoseReplyWasLostSaysWhomItTookOver(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, wire := w.Client(lab.Config())
		b, bwire := w.Client(lab.Config())
		dead := w.Acquire(a, "job")
		wire.SetFault(lab.Cut)
		if _, err := b.TryAcquire(t.Context(), "job"); !errors.Is(err, leasehold.ErrHeld) {
			t.Fatal(err)
		}
		lab.Elapse(20 * time.Second)
		bwire.SetFault(lab.Once(lab.Call.Grants, lab.LoseReply))
		lock := w.Acquire(b, "job")
		if r, ok := lock.TookOver(); !ok || r.Token != dead.Token() {
			t.Errorf("took over %+v, %v", r, ok)
		}
		w.Release(lock)
		_ = dead.Release(t.Context())
	})
}

func TestAGrantIsWaitedForNoLongerThanItCouldBeTrusted(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.Once(lab.Call.Grants, lab.Cut))
		began := time.Now()
		lock := w.Acquire(c, "job", leasehold.WithLease(time.Second))
		if took := time.Since(began); took > 1100*time.Millisecond {
			t.Errorf("took %v", took)
		}
		w.Release(lock)
	})
}

func TestAGrantIsAskedForUntilItIsAnsweredHoweverManyAttemptsHadNoAnswer(t *testing.T) {
	for name, acquire := range map[string]func(ctx context.Context, c *leasehold.Client) error{
		"Acquire": func(ctx context.Context, c *leasehold.Client) error { return second(c.Acquire(ctx, "a")) },
		"AcquireAny": func(ctx context.Context, c *leasehold.Client) error {
			return second(c.AcquireAny(ctx, leasehold.Keys("a", "b")))
		},
		"AcquireAll": func(ctx context.Context, c *leasehold.Client) error {
			return second(c.AcquireAll(ctx, leasehold.Keys("a", "b")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.Config())
				var asked atomic.Int32
				wire.SetFault(func(r *lab.Request) (*http.Response, error) {
					if r.Grants() && asked.Add(1) <= 250 {
						return nil, lab.ErrReset
					}
					return r.Send()
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				if err := acquire(ctx, c); err != nil || asked.Load() != 251 {
					t.Errorf("after %d requests: %v", asked.Load(), err)
				}
				_ = c.Close(t.Context())
			})
		})
	}
}

func TestAnAttemptTooOldToBeNamedIsTakenOverAtOnceWhenItIsAppliedLate(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		var asked atomic.Int32
		var first *lab.Request
		var mended time.Time
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if !r.Grants() || !mended.IsZero() {
				return r.Send()
			}
			switch asked.Add(1) {
			case 1:
				first = r
			case 60: // the first is not named any more
				_, _ = first.Send()
				mended = time.Now()
			}
			return nil, lab.ErrReset
		})
		lock := w.Acquire(c, "job")
		if took := time.Since(mended); took > 5*time.Second {
			t.Errorf("acquired %v later", took)
		}
		w.Release(lock)
	})
}

func TestARefusalAfterALostReplyIsAnUnknownOutcome(t *testing.T) {
	for name, tc := range map[string]struct {
		fits func(lab.Call) bool
		do   func(ctx context.Context, c *leasehold.Client, lock *leasehold.Lock) error
	}{
		"renew": {lab.Call.Renews, func(ctx context.Context, _ *leasehold.Client, lock *leasehold.Lock) error {
			return lock.Renew(ctx, leasehold.WithData([]byte("x")))
		}},
		"break": {lab.Call.Releases, func(ctx context.Context, c *leasehold.Client, lock *leasehold.Lock) error {
			return c.Break(ctx, lock.Record())
		}},
		"resume": {lab.Call.Renews, func(ctx context.Context, c *leasehold.Client, lock *leasehold.Lock) error {
			g, err := lock.Detach()
			if err != nil {
				return err
			}
			_, err = c.Resume(ctx, g)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.Config())
				lock := w.Acquire(c, "job", leasehold.WithoutRenewal())
				lost := false
				wire.SetFault(func(r *lab.Request) (*http.Response, error) {
					if tc.fits(r.Call) && !lost {
						lost = true
						return lab.LoseReply(r)
					}
					return lab.Refusal(400, "AccessDeniedException"), nil
				})
				if err := tc.do(t.Context(), c, lock); !errors.Is(err, leasehold.ErrUnknownOutcome) {
					t.Errorf("landed, then refused: %v", err)
				}
				wire.SetFault(nil)
				_ = lock.Release(t.Context())
			})
		})
	}
}
