package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
)

// refuseReleases answers every release with an error of the request.
func refuseReleases(code string) func(context.Context, call, func() (*http.Response, error)) (*http.Response, error) {
	return func(_ context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
		if c.releases() {
			return refusal(400, code), nil
		}
		return next()
	}
}

func TestAReleaseThatWasRefusedIsSentAgain(t *testing.T) {
	type held interface {
		Release(context.Context, ...leasehold.ReleaseOption) error
	}
	all := func(t *testing.T, c *leasehold.Client) *leasehold.Group {
		g, err := c.AcquireAll(t.Context(), leasehold.Keys("job", "other"))
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	ways := map[string]func(*testing.T, *world, *leasehold.Client) (held, func() error){
		"a lock": func(t *testing.T, w *world, c *leasehold.Client) (held, func() error) {
			l := w.acquire(c, "job")
			return l, func() error { return l.Release(t.Context()) }
		},
		"a group": func(t *testing.T, _ *world, c *leasehold.Client) (held, func() error) {
			g := all(t, c)
			return g, func() error { return g.Release(t.Context()) }
		},
		"a commit that releases": func(t *testing.T, w *world, c *leasehold.Client) (held, func() error) {
			l := w.acquire(c, "job")
			return l, func() error { return l.CommitAndRelease(t.Context(), writes(note("a", "1"))) }
		},
		"a group's commit that releases": func(t *testing.T, _ *world, c *leasehold.Client) (held, func() error) {
			g := all(t, c)
			return g, func() error { return g.CommitAndRelease(t.Context(), writes(note("a", "1"))) }
		},
	}
	for _, shared := range []bool{false, true} {
		for _, code := range []string{"AccessDeniedException", "ExpiredTokenException", "ValidationException"} {
			for name, way := range ways {
				t.Run(fmt.Sprintf("%s, %s, shared lease %v", name, code, shared), func(t *testing.T) {
					inBubble(t, func(t *testing.T, w *world) {
						cfg := config()
						cfg.SharedLease = shared
						c, wire := w.work().client(cfg)
						lock, release := way(t, w, c)
						wire.setFault(refuseReleases(code))
						var op *leasehold.OpError
						if err := release(); !errors.As(err, &op) {
							t.Errorf("refused: %v", err)
						}
						if err := lock.Release(t.Context()); !errors.As(err, &op) {
							t.Errorf("refused again: %v", err)
						}
						wire.setFault(nil)
						if err := lock.Release(t.Context()); err != nil {
							t.Errorf("allowed: %v", err)
						}
						if textOf(w.item("job"), "isReleased") != "1" {
							t.Errorf("record %v", w.item("job"))
						}
						wire.sent()
						if err := lock.Release(t.Context()); err != nil || len(wire.sent()) != 0 {
							t.Errorf("once more: %v", err)
						}
						if err := c.Close(t.Context()); err != nil {
							t.Error(err)
						}
					})
				})
			}
		}
	}
}

func TestAReleaseOfALostLockThatWasRefusedIsSentAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		lock := w.acquire(c, "job", leasehold.WithoutRenewal())
		elapse(time.Minute)
		wire.setFault(refuseReleases("AccessDeniedException"))
		if err := lock.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("refused: %v", err)
		}
		wire.setFault(nil)
		if err := lock.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("allowed: %v", err)
		}
		if textOf(w.item("job"), "isReleased") != "1" {
			t.Errorf("record %v", w.item("job"))
		}
	})
}

func TestAReleaseDoesNotWaitForOneThatNobodyWaitsForAnyMore(t *testing.T) {
	for name, acquire := range map[string]func(*testing.T, *world, *leasehold.Client) func(context.Context) error{
		"a lock": func(_ *testing.T, w *world, c *leasehold.Client) func(context.Context) error {
			l := w.acquire(c, "job")
			return func(ctx context.Context) error { return l.Release(ctx) }
		},
		"a group": func(t *testing.T, _ *world, c *leasehold.Client) func(context.Context) error {
			g, err := c.AcquireAll(t.Context(), leasehold.Keys("job", "other"))
			if err != nil {
				t.Fatal(err)
			}
			return func(ctx context.Context) error { return g.Release(ctx) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				cfg := config()
				cfg.ReleaseGrace = 500 * time.Millisecond
				c, wire := w.client(cfg)
				release := acquire(t, w, c)
				wire.setFault(cut)
				ended, cancel := context.WithCancel(t.Context())
				cancel()
				if err := release(ended); !errors.Is(err, leasehold.ErrUnknownOutcome) {
					t.Errorf("without a network: %v", err)
				}
				wire.setFault(nil) // the request that had no answer goes on without one
				began := time.Now()
				if err := release(ended); err != nil || time.Since(began) > 100*time.Millisecond {
					t.Errorf("again: %v after %v", err, time.Since(began))
				}
				if textOf(w.item("job"), "isReleased") != "1" {
					t.Errorf("record %v", w.item("job"))
				}
			})
		})
	}
}

func TestTwoReleasesAtOnceAreOneEffort(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		lock := w.acquire(c, "job")
		wire.sent()
		wire.setFault(func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
			return slow(time.Second)(ctx, c, next)
		})
		first := make(chan error)
		go func() { first <- lock.Release(t.Context()) }()
		elapse(100 * time.Millisecond)
		if err := lock.Release(t.Context()); err != nil {
			t.Errorf("second: %v", err)
		}
		if err := <-first; err != nil {
			t.Errorf("first: %v", err)
		}
		if n := len(wire.sent()); n != 1 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestAKeyWhoseReleaseFailedIsFreeToItsOwnClient(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprintf("shared lease %v", shared), func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				cfg := config()
				cfg.SharedLease = shared
				c, wire := w.client(cfg)
				lock := w.acquire(c, "job")
				wire.setFault(refuseReleases("AccessDeniedException"))
				if err := lock.Release(t.Context()); err == nil {
					t.Error("released")
				}
				wire.setFault(nil)
				next, err := c.TryAcquire(t.Context(), "job")
				if err != nil {
					t.Fatal(err)
				}
				w.release(next)
				if err := c.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestReleasesWithoutAnAnswerDoNotAddUp(t *testing.T) { // a condition names 100 versions at most
	inBubble(t, func(t *testing.T, w *world) {
		cfg := config()
		cfg.Lease = time.Hour
		c, wire := w.client(cfg)
		lock := w.acquire(c, "job", leasehold.WithoutRenewal())
		lost := func(_ context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
			if c.op == "UpdateItem" {
				return nil, errReset // before it arrived
			}
			return next()
		}
		wire.setFault(lost)
		for range 150 {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			if err := lock.Release(ctx); !errors.Is(err, leasehold.ErrUnknownOutcome) {
				t.Fatalf("release: %v", err)
			}
			cancel()
		}
		wire.setFault(nil)
		if err := lock.Release(t.Context()); err != nil {
			t.Errorf("in the end: %v", err)
		}
		if textOf(w.item("job"), "isReleased") != "1" {
			t.Errorf("record %v", w.item("job"))
		}
	})
}

func TestDoDoesNotReturnAReleaseThatFailed(t *testing.T) {
	for _, code := range []string{"AccessDeniedException", "InternalServerError"} {
		t.Run(code, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				cfg := config()
				var failed error
				cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
					if e.Kind == leasehold.EventReleased {
						failed = e.Err
					}
				}
				c, wire := w.client(cfg)
				wire.setFault(func(_ context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
					switch {
					case !c.releases():
						return next()
					case code == "InternalServerError":
						return refusal(500, code), nil
					}
					return refusal(400, code), nil
				})
				work := errors.New("work")
				for _, want := range []error{nil, work} {
					err := c.Do(t.Context(), fmt.Sprint("job/", want), func(context.Context, *leasehold.Lock) error { return want })
					if err != want { //nolint:errorlint // as it is: a caller repeats what it takes for failed
						t.Errorf("work returned %v, Do %v", want, err)
					}
					if failed == nil {
						t.Error("nobody hears of the release that failed")
					}
				}
			})
		})
	}
}

func TestAReleaseThatFailedUnderASharedLeaseIsRepeatedByItsClient(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		cfg := config()
		cfg.SharedLease = true
		c, wire := w.client(cfg)
		other, _ := w.client(config())
		wire.setFault(refuseReleases("AccessDeniedException"))
		if err := c.Do(t.Context(), "job", func(context.Context, *leasehold.Lock) error { return nil }); err != nil {
			t.Error(err)
		}
		elapse(10 * time.Minute)
		if n := countCalls(wire.sent(), call.releases); n < 2 || n > 7 {
			t.Errorf("%d releases sent in ten minutes", n)
		}
		wire.setFault(nil)
		began := time.Now()
		lock := w.acquire(other, "job")
		if took := time.Since(began); took > touchingSoon {
			t.Errorf("the session's other locks were renewed, and this key was held by nobody for %v", took)
		}
		w.release(lock)
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		wire.sent()
		elapse(time.Hour)
		if n := len(wire.sent()); n != 0 {
			t.Errorf("%d requests after Close", n)
		}
	})
}

// touchingSoon is the longest pause between two releases under a session, whose
// records are touched every twenty minutes.
const touchingSoon = 20 * time.Minute

func TestAReleaseThatIsRepeatedAfterItsOwnClientTookTheKeyIsDone(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		lock := w.acquire(c, "job")
		wire.setFault(refuseReleases("AccessDeniedException"))
		if err := lock.Release(t.Context()); err == nil {
			t.Error("released")
		}
		wire.setFault(nil)
		next := w.acquire(c, "job")
		if err := lock.Release(t.Context()); err != nil {
			t.Errorf("again: %v", err)
		}
		if err := next.Renew(t.Context()); err != nil {
			t.Errorf("the next holder: %v", err)
		}
		w.release(next)
	})
}
