package hold_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// refuseReleases answers every release with an error.
func refuseReleases(code string) lab.Fault {
	return func(r *lab.Request) (*http.Response, error) {
		if r.Releases() {
			return lab.Refusal(400, code), nil
		}
		return r.Send()
	}
}

func TestRefusedReleaseMayBeSentAgain(t *testing.T) {
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
	ways := map[string]func(*testing.T, *lab.World, *leasehold.Client) (held, func() error){
		"a lock": func(t *testing.T, w *lab.World, c *leasehold.Client) (held, func() error) {
			l := w.Acquire(c, "job")
			return l, func() error { return l.Release(t.Context()) }
		},
		"a group": func(t *testing.T, _ *lab.World, c *leasehold.Client) (held, func() error) {
			g := all(t, c)
			return g, func() error { return g.Release(t.Context()) }
		},
		"a commit that releases": func(t *testing.T, w *lab.World, c *leasehold.Client) (held, func() error) {
			l := w.Acquire(c, "job")
			return l, func() error { return l.CommitAndRelease(t.Context(), lab.Writes(lab.Note("a", "1"))) }
		},
		"a group's commit that releases": func(t *testing.T, _ *lab.World, c *leasehold.Client) (held, func() error) {
			g := all(t, c)
			return g, func() error { return g.CommitAndRelease(t.Context(), lab.Writes(lab.Note("a", "1"))) }
		},
	}
	for _, shared := range []bool{false, true} {
		for _, code := range []string{"AccessDeniedException", "ExpiredTokenException", "ValidationException"} {
			for name, way := range ways {
				t.Run(fmt.Sprintf("%s, %s, shared lease %v", name, code, shared), func(t *testing.T) {
					lab.InBubble(t, func(t *testing.T, w *lab.World) {
						cfg := lab.Config()
						cfg.SharedLease = shared
						c, wire := w.Work().Client(cfg)
						lock, release := way(t, w, c)
						wire.SetFault(refuseReleases(code))
						var op *leasehold.OpError
						if err := release(); !errors.As(err, &op) {
							t.Errorf("refused: %v", err)
						}
						if err := lock.Release(t.Context()); !errors.As(err, &op) {
							t.Errorf("refused again: %v", err)
						}
						wire.SetFault(nil)
						if err := lock.Release(t.Context()); err != nil {
							t.Errorf("allowed: %v", err)
						}
						if lab.Text(w.Item("job"), "isReleased") != "1" {
							t.Errorf("record %v", w.Item("job"))
						}
						wire.Sent()
						if err := lock.Release(t.Context()); err != nil || len(wire.Sent()) != 0 {
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

func TestReleaseDoesNotWaitForAbandonedRelease(t *testing.T) {
	for name, acquire := range map[string]func(*testing.T, *lab.World, *leasehold.Client) func(context.Context) error{
		"a lock": func(_ *testing.T, w *lab.World, c *leasehold.Client) func(context.Context) error {
			l := w.Acquire(c, "job")
			return func(ctx context.Context) error { return l.Release(ctx) }
		},
		"a group": func(t *testing.T, _ *lab.World, c *leasehold.Client) func(context.Context) error {
			g, err := c.AcquireAll(t.Context(), leasehold.Keys("job", "other"))
			if err != nil {
				t.Fatal(err)
			}
			return func(ctx context.Context) error { return g.Release(ctx) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				cfg := lab.Config()
				cfg.ReleaseGrace = 500 * time.Millisecond
				c, wire := w.Client(cfg)
				release := acquire(t, w, c)
				wire.SetFault(lab.Cut)
				ended, cancel := context.WithCancel(t.Context())
				cancel()
				if err := release(ended); !errors.Is(err, leasehold.ErrUnknownOutcome) {
					t.Errorf("without a network: %v", err)
				}
				wire.SetFault(nil) // later requests are answered; the unanswered request stays unanswered
				began := time.Now()
				if err := release(ended); err != nil || time.Since(began) > 100*time.Millisecond {
					t.Errorf("again: %v after %v", err, time.Since(began))
				}
				if lab.Text(w.Item("job"), "isReleased") != "1" {
					t.Errorf("record %v", w.Item("job"))
				}
			})
		})
	}
}

func TestConcurrentReleasesOfLockSendOneRequest(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		wire.Sent()
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			return lab.Slow(time.Second)(r)
		})
		first := make(chan error)
		go func() { first <- lock.Release(t.Context()) }()
		lab.Elapse(100 * time.Millisecond)
		if err := lock.Release(t.Context()); err != nil {
			t.Errorf("second: %v", err)
		}
		if err := <-first; err != nil {
			t.Errorf("first: %v", err)
		}
		if n := len(wire.Sent()); n != 1 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestKeyAfterFailedReleaseIsFreeForSameClient(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprintf("shared lease %v", shared), func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				cfg := lab.Config()
				cfg.SharedLease = shared
				c, wire := w.Client(cfg)
				lock := w.Acquire(c, "job")
				wire.SetFault(refuseReleases("AccessDeniedException"))
				if err := lock.Release(t.Context()); err == nil {
					t.Error("released")
				}
				wire.SetFault(nil)
				next, err := c.TryAcquire(t.Context(), "job")
				if err != nil {
					t.Fatal(err)
				}
				w.Release(next)
				if err := c.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestUnansweredReleasesStayWithinLimitOfConditionOperands(t *testing.T) { // a condition names 100 versions at most
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := lab.Config()
		cfg.Lease = time.Hour
		c, wire := w.Client(cfg)
		lock := w.Acquire(c, "job", leasehold.WithoutRenewal())
		lost := func(r *lab.Request) (*http.Response, error) {
			if r.Op == "UpdateItem" {
				return nil, lab.ErrReset // the request is lost before it arrives
			}
			return r.Send()
		}
		wire.SetFault(lost)
		for range 150 {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			if err := lock.Release(ctx); !errors.Is(err, leasehold.ErrUnknownOutcome) {
				t.Fatalf("release: %v", err)
			}
			cancel()
		}
		wire.SetFault(nil)
		if err := lock.Release(t.Context()); err != nil {
			t.Errorf("in the end: %v", err)
		}
		if lab.Text(w.Item("job"), "isReleased") != "1" {
			t.Errorf("record %v", w.Item("job"))
		}
	})
}

func TestDoIgnoresErrorOfFailedRelease(t *testing.T) {
	for _, code := range []string{"AccessDeniedException", "InternalServerError"} {
		t.Run(code, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				cfg := lab.Config()
				var failed atomic.Bool // atomic, as it is read while a failed release is still repeated in the background
				cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
					if e.Kind == leasehold.EventReleased && e.Err != nil {
						failed.Store(true)
					}
				}
				c, wire := w.Client(cfg)
				wire.SetFault(func(r *lab.Request) (*http.Response, error) {
					switch {
					case !r.Releases():
						return r.Send()
					case code == "InternalServerError":
						return lab.Refusal(500, code), nil
					}
					return lab.Refusal(400, code), nil
				})
				work := errors.New("work")
				for _, want := range []error{nil, work} {
					err := c.Do(t.Context(), fmt.Sprint("job/", want), func(context.Context, *leasehold.Lock) error { return want })
					if err != want { //nolint:errorlint // as it is: a caller repeats what it takes for failed
						t.Errorf("work returned %v, Do %v", want, err)
					}
					if !failed.Swap(false) {
						t.Error("nobody hears of the release that failed")
					}
				}
				wire.SetFault(nil)
				if err := c.Close(t.Context()); err != nil { // Close ends the repetitions in the background
					t.Error(err)
				}
			})
		})
	}
}

func TestBackgroundReleaseEventHasNoHeldTime(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		var mu sync.Mutex
		var released []leasehold.Event
		cfg := lab.Config()
		cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
			mu.Lock()
			defer mu.Unlock()
			if e.Kind == leasehold.EventReleased {
				released = append(released, e)
			}
		}
		c, wire := w.Client(cfg)
		lock := w.Acquire(c, "job")
		time.Sleep(2 * time.Second)
		wire.SetFault(refuseReleases("ThrottlingException"))
		ended, end := context.WithCancel(t.Context())
		end()
		if err := lock.Release(ended); err == nil {
			t.Fatal("not what this test is about: it was released")
		}
		wire.SetFault(nil)
		lab.Elapse(10 * time.Second)
		_ = c.Close(t.Context())
		if len(released) != 2 || released[0].Err == nil || released[0].Held < 2*time.Second || released[1].Err != nil || released[1].Held != 0 {
			t.Errorf("reported: %+v", released)
		}
	})
}

func TestClientRepeatsFailedReleaseUnderSharedLease(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := lab.Config()
		cfg.SharedLease = true
		c, wire := w.Client(cfg)
		other, _ := w.Client(lab.Config())
		wire.SetFault(refuseReleases("AccessDeniedException"))
		if err := c.Do(t.Context(), "job", func(context.Context, *leasehold.Lock) error { return nil }); err != nil {
			t.Error(err)
		}
		lab.Elapse(10 * time.Minute)
		if n := lab.Count(wire.Sent(), lab.Call.Releases); n < 2 || n > 7 {
			t.Errorf("%d releases sent in ten minutes", n)
		}
		wire.SetFault(nil)
		began := time.Now()
		lock := w.Acquire(other, "job")
		if took := time.Since(began); took > touchingSoon {
			t.Errorf("the session's other locks were renewed, and this key was held by nobody for %v", took)
		}
		w.Release(lock)
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		wire.Sent()
		lab.Elapse(time.Hour)
		if n := len(wire.Sent()); n != 0 {
			t.Errorf("%d requests after Close", n)
		}
	})
}

// touchingSoon is the longest pause between two attempts of a release under a session, whose
// records are touched every twenty minutes.
const touchingSoon = 20 * time.Minute

func TestFailedReleaseLogsHowKeyWillBeFreed(t *testing.T) {
	for _, tc := range []struct {
		code   string
		shared bool
		want   string
	}{
		{"ValidationException", false, "the lease frees the key"},
		{"ThrottlingException", false, "it is repeated until the lease has ended"},
		{"ThrottlingException", true, "it is repeated while the shared lease is renewed"},
	} {
		t.Run(tc.want, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				cfg, log := lab.Config(), new(bytes.Buffer)
				cfg.SharedLease, cfg.Logger = tc.shared, slog.New(slog.NewTextHandler(log, nil))
				c, wire := w.Client(cfg)
				lock := w.Acquire(c, "job")
				wire.SetFault(refuseReleases(tc.code))
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				if err := lock.Release(ctx); err == nil {
					t.Error("released")
				}
				if said := log.String(); strings.Count(said, "release failed: ") != 1 || !strings.Contains(said, "release failed: "+tc.want) {
					t.Errorf("said %s", said)
				}
				wire.SetFault(nil)
				_ = c.Close(t.Context())
			})
		})
	}
}

func TestSecondReleaseSucceedsOnceSameClientHoldsKeyAgain(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		wire.SetFault(refuseReleases("AccessDeniedException"))
		if err := lock.Release(t.Context()); err == nil {
			t.Error("released")
		}
		wire.SetFault(nil)
		next := w.Acquire(c, "job")
		if err := lock.Release(t.Context()); err != nil {
			t.Errorf("again: %v", err)
		}
		if err := next.Renew(t.Context()); err != nil {
			t.Errorf("the next holder: %v", err)
		}
		w.Release(next)
	})
}

func TestReleaseFreesGrantMadeByUnansweredHandOver(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		next, leave := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			_, err := c.Acquire(next, "job")
			left <- err
		}()
		synctest.Wait()
		wire.SetFault(lab.Once(lab.Call.HandsOver, func(r *lab.Request) (*http.Response, error) {
			wire.SetFault(func(*lab.Request) (*http.Response, error) { return nil, lab.ErrReset })
			leave()
			return lab.LoseReply(r)
		}))
		limit, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := lock.Release(limit); !errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("without an answer: %v", err)
		}
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("the next: %v", err)
		}
		wire.SetFault(nil)
		if err := lock.Release(t.Context()); err != nil || lab.Text(w.Item("job"), "isReleased") != "1" {
			t.Errorf("again: %v, record %v", err, w.Item("job"))
		}
	})
}

func TestReleaseWithoutTimeLimitEndsAfterSharedLease(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.SharedConfig())
		lock := w.Acquire(c, "job")
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Releases() {
				<-r.Context().Done() // the release gets no answer
				return nil, r.Context().Err()
			}
			return r.Send()
		})
		began := time.Now()
		if err := lock.Release(t.Context()); !errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("without an answer: %v", err)
		}
		if took := time.Since(began); took < 20*time.Second || took > 25*time.Second {
			t.Errorf("it took %v", took)
		}
		wire.SetFault(nil)
		lab.Elapse(time.Minute)
		if !w.IsReleased("job") {
			t.Error("not repeated while the shared lease is renewed")
		}
	})
}

func TestReleaseTimeCountsFromFirstRequest(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := lab.Config()
		var released []leasehold.Event
		var mu sync.Mutex
		cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
			if e.Kind == leasehold.EventReleased {
				mu.Lock()
				defer mu.Unlock()
				released = append(released, e)
			}
		}
		c, wire := w.Client(cfg)
		g := w.AcquireAll(c, leasehold.Keys("a", "b"))
		lab.Elapse(time.Second)
		wire.SetFault(lab.Once(lab.Call.Releases, lab.Late(2*time.Second, lab.LoseReply)))
		if err := g.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		slow := 0
		for _, e := range released {
			if e.Held >= 2*time.Second {
				t.Errorf("%v was held for %v, not for one second", e.Key, e.Held)
			}
			if e.Took >= 2*time.Second {
				slow++
			}
		}
		if len(released) != 2 || slow != 1 {
			t.Errorf("%d events, %d of a release that took two seconds", len(released), slow)
		}
	})
}
