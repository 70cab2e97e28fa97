package hold_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// outage applies a fault to all requests of a client until d has passed.
func outage(d time.Duration, fault lab.Fault) lab.Fault {
	began := time.Now()
	return func(r *lab.Request) (*http.Response, error) {
		if time.Since(began) < d {
			return fault(r)
		}
		return r.Send()
	}
}

// reset breaks the connection before the request has arrived.
func reset(*lab.Request) (*http.Response, error) { return nil, lab.ErrReset }

// troubles are failures after which a release is repeated.
var troubles = map[string]lab.Fault{
	"throttled": lab.Throttled, "server error": lab.Out, "connection reset": reset, "no answer": lab.Cut,
	"reply lost": lab.LoseReply,
	"expired":    func(*lab.Request) (*http.Response, error) { return lab.Refusal(400, "ExpiredTokenException"), nil },
	"denied":     func(*lab.Request) (*http.Response, error) { return lab.Refusal(400, "AccessDeniedException"), nil },
}

// shortLease returns a configuration with a lease of ten seconds.
func shortLease() leasehold.Config {
	cfg := lab.Config()
	cfg.Lease = 10 * time.Second
	return cfg
}

func TestMarkIsStoredDespiteFailuresWithinLease(t *testing.T) {
	ways := map[string]func(context.Context, *leasehold.Client, func()) error{
		"Do": func(ctx context.Context, c *leasehold.Client, done func()) error {
			return c.Do(ctx, "job", func(context.Context, *leasehold.Lock) error { done(); return nil }, leasehold.Once("mon"))
		},
		"MarkDone": func(ctx context.Context, c *leasehold.Client, done func()) error {
			lock, err := c.Acquire(ctx, "job", leasehold.Once("mon"))
			if err != nil {
				return err
			}
			done()
			return lock.Release(ctx, leasehold.MarkDone())
		},
	}
	for trouble, fault := range troubles {
		for way, do := range ways {
			t.Run(trouble+", "+way, func(t *testing.T) {
				lab.InBubble(t, func(t *testing.T, w *lab.World) {
					c, wire := w.Client(shortLease())
					other, _ := w.Client(shortLease())
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					waits := make(chan error, 1)
					err := do(ctx, c, func() {
						go func() {
							_, err := other.Acquire(t.Context(), "job", leasehold.Once("mon"))
							waits <- err
						}()
						synctest.Wait()
						wire.SetFault(outage(6*time.Second, fault))
						cancel() // a cancelled context limits a release without a mark to the grace
					})
					if err != nil {
						t.Errorf("after trouble of six seconds: %v", err)
					}
					if err := <-waits; !errors.Is(err, leasehold.ErrDone) {
						t.Errorf("a waiter: %v", err)
					}
				})
			})
		}
	}
}

func TestReleaseReturnsErrorIfMarkIsNotStoredWithinLease(t *testing.T) {
	for trouble, fault := range troubles {
		if trouble == "reply lost" {
			continue // in this case the mark is stored
		}
		t.Run(trouble, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(shortLease())
				other, _ := w.Client(shortLease())
				var began time.Time
				err := c.Do(t.Context(), "job", func(context.Context, *leasehold.Lock) error {
					wire.SetFault(fault)
					began = time.Now()
					return nil
				}, leasehold.Once("mon"))
				took := time.Since(began)
				var op *leasehold.OpError
				if !errors.As(err, &op) || errors.Is(err, leasehold.ErrLost) {
					t.Errorf("the mark is not stored: %v", err)
				}
				if took < 9*time.Second || took > 14*time.Second {
					t.Errorf("gave up after %v, the lease is of ten seconds", took)
				}
				lock, err := other.Acquire(t.Context(), "job", leasehold.Once("mon"))
				if err != nil {
					t.Fatalf("the next: %v", err)
				}
				w.Release(lock)
			})
		})
	}
}

func TestReleaseReturnsErrorAtOnceIfMarkIsRefused(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(shortLease())
		wire.SetFault(refuseReleases("ValidationException"))
		began := time.Now()
		err := c.Do(t.Context(), "job", func(context.Context, *leasehold.Lock) error { return nil }, leasehold.Once("mon"))
		var op *leasehold.OpError
		if !errors.As(err, &op) || time.Since(began) > time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

func TestCloseLimitsTimeForStoringMark(t *testing.T) {
	for trouble, fault := range map[string]lab.Fault{"throttled": lab.Throttled, "no answer": lab.Cut} {
		t.Run(trouble, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				cfg := shortLease()
				cfg.ReleaseGrace = 2 * time.Second
				c, wire := w.Client(cfg)
				ended := make(chan error, 1)
				go func() {
					ended <- c.Do(t.Context(), "job", func(context.Context, *leasehold.Lock) error {
						wire.SetFault(fault)
						return nil
					}, leasehold.Once("mon"))
				}()
				lab.Elapse(time.Second)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				began := time.Now()
				_ = c.Close(ctx)
				if took := time.Since(began); took > 2100*time.Millisecond {
					t.Errorf("Close took %v", took)
				}
				err := <-ended
				if took := time.Since(began); err == nil || took > 2100*time.Millisecond {
					t.Errorf("Do ended %v after Close began: %v", took, err)
				}
				lab.Elapse(5 * time.Second) // let the requests in flight end
				wire.Sent()
				lab.Elapse(time.Hour)
				if n := len(wire.Sent()); n > 0 {
					t.Errorf("%d requests after Close", n)
				}
			})
		})
	}
}

// longLease returns a configuration with a lease so long that no caller waits for its end.
// So a failed release is repeated in the background.
func longLease() leasehold.Config {
	cfg := lab.Config()
	cfg.Lease = 15 * time.Minute
	return cfg
}

func TestFailedReleaseIsRepeatedInBackground(t *testing.T) {
	for trouble, fault := range troubles {
		t.Run(trouble, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(longLease())
				lock := w.Acquire(c, "job")
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				began := time.Now()
				wire.SetFault(outage(10*time.Second, fault))
				err := lock.Release(ctx)
				if took := time.Since(began); err == nil && trouble != "reply lost" || took > 2100*time.Millisecond {
					t.Errorf("after %v: %v", took, err)
				}
				lab.Elapse(75*time.Second - time.Since(began)) // the longest pause between attempts is a minute
				if !w.IsReleased("job") {
					t.Error("held though the trouble is over")
				}
				wire.Sent()
				lab.Elapse(time.Hour)
				if n := len(wire.Sent()); n > 0 {
					t.Errorf("%d requests after the key was free", n)
				}
			})
		})
	}
}

func TestBackgroundReleaseEventuallyStops(t *testing.T) {
	failing := func(t *testing.T, w *lab.World, fault lab.Fault) (*leasehold.Client, *lab.Wire, *leasehold.Lock) {
		c, wire := w.Client(longLease())
		lock := w.Acquire(c, "job")
		wire.SetFault(fault)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := lock.Release(ctx); err == nil {
			t.Fatal("released")
		}
		return c, wire, lock
	}
	for _, trouble := range []string{"throttled", "no answer", "connection reset"} {
		t.Run("with the lease, "+trouble, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				_, wire, _ := failing(t, w, troubles[trouble])
				lab.Elapse(14 * time.Minute)
				if n := len(wire.Sent()); n < 10 || n > 400 {
					t.Errorf("%d requests in 14 minutes", n)
				}
				lab.Elapse(2 * time.Minute)
				wire.Sent()
				lab.Elapse(time.Hour)
				if n := len(wire.Sent()); n > 0 {
					t.Errorf("%d requests after the lease", n)
				}
			})
		})
	}
	t.Run("with Close", func(t *testing.T) {
		lab.InBubble(t, func(t *testing.T, w *lab.World) {
			c, wire, _ := failing(t, w, lab.Throttled)
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
			defer cancel()
			began := time.Now()
			_ = c.Close(ctx)
			if took := time.Since(began); took > 4100*time.Millisecond {
				t.Errorf("Close took %v", took)
			}
			wire.Sent()
			lab.Elapse(time.Hour)
			if n := len(wire.Sent()); n > 0 {
				t.Errorf("%d requests after Close", n)
			}
		})
	})
	t.Run("with the key, within Close", func(t *testing.T) {
		lab.InBubble(t, func(t *testing.T, w *lab.World) {
			c, wire, _ := failing(t, w, lab.Throttled)
			wire.SetFault(nil)
			if err := c.Close(t.Context()); err != nil || !w.IsReleased("job") {
				t.Errorf("closed: %v, record %v", err, w.Item("job"))
			}
		})
	})
	t.Run("with another release", func(t *testing.T) {
		lab.InBubble(t, func(t *testing.T, w *lab.World) {
			_, wire, lock := failing(t, w, lab.Throttled)
			lab.Elapse(10 * time.Minute)
			wire.SetFault(nil)
			began := time.Now()
			if err := lock.Release(t.Context()); err != nil || time.Since(began) > 100*time.Millisecond {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
			wire.Sent()
			lab.Elapse(time.Hour)
			if n := len(wire.Sent()); n > 0 {
				t.Errorf("%d requests after the key was free", n)
			}
		})
	})
	t.Run("refused for good", func(t *testing.T) {
		lab.InBubble(t, func(t *testing.T, w *lab.World) {
			_, wire, _ := failing(t, w, refuseReleases("ValidationException"))
			lab.Elapse(time.Hour)
			if n := lab.Count(wire.Sent(), lab.Call.Releases); n != 1 {
				t.Errorf("sent %d times", n)
			}
		})
	})
}

func TestBackgroundReleaseDoesNotEndGrantOfNextHolder(t *testing.T) {
	for _, same := range []bool{true, false} {
		t.Run(fmt.Sprintf("of the same client %v", same), func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.Config())
				other, _ := w.Client(lab.Config())
				if same {
					other = c
				}
				lock := w.Acquire(c, "job")
				wire.SetFault(refuseOf(lab.Call.Releases))
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := lock.Release(ctx); err == nil {
					t.Fatal("released")
				}
				next := w.Acquire(other, "job")
				wire.SetFault(nil)
				lab.Elapse(time.Minute)
				if err := next.Err(); err != nil {
					t.Errorf("the next holder: %v", err)
				}
				w.Release(next)
			})
		})
	}
}

// refuseOf returns a fault that throttles the requests that satisfy the predicate fits.
func refuseOf(fits func(lab.Call) bool) lab.Fault {
	return func(r *lab.Request) (*http.Response, error) {
		if fits(r.Call) {
			return lab.Throttled(r)
		}
		return r.Send()
	}
}
