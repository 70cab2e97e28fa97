package behaviour_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// refusals maps error codes to a part of the error's text. The errors concern credentials
// or permissions, and may be temporary.
var refusals = map[string]string{ // error codes, each with a part of the error's text
	"ExpiredTokenException":       "the credentials have expired: renew them",
	"UnrecognizedClientException": "the credentials were refused: check them",
	"AccessDeniedException":       "access denied: allow it in the caller's IAM policy (leasehold table policy --prefix PREFIX prints one)",
}

// blocked lists calls that wait for a key. Each is stored with the way in which another
// client blocks the key.
var blocked = map[string]struct {
	block func(w *lab.World, c *leasehold.Client) (unblock func())
	wait  func(ctx context.Context, c *leasehold.Client) error
}{
	"acquire": {blockJob, waits["acquire"]},
	"all":     {blockJob, waits["all"]},
	"any": {func(w *lab.World, c *leasehold.Client) func() {
		job, z := w.Acquire(c, "job"), w.Acquire(c, "z")
		return func() { w.Release(job); w.Release(z) }
	}, waits["any"]},
	"lead": {blockJob, func(ctx context.Context, c *leasehold.Client) error {
		e, err := election.New(c, "job")
		if err != nil {
			return err
		}
		return e.Lead(ctx, "", func(context.Context, *leasehold.Lock) error { return nil })
	}},
}

func blockJob(w *lab.World, c *leasehold.Client) func() {
	lock := w.Acquire(c, "job")
	return func() { w.Release(lock) }
}

// granted fails the test unless a wait has ended with a grant.
func granted(t *testing.T, ended <-chan error) {
	t.Helper()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	default:
		t.Error("it waits for a free key")
	}
}

// refusing returns a fault that refuses every request with code.
func refusing(code string) lab.Fault {
	return lab.Answer(func() *http.Response { return lab.Refusal(400, code) })
}

func TestWaitContinuesAfterTemporaryRefusal(t *testing.T) {
	for name, b := range blocked {
		for code := range refusals {
			t.Run(name+"/"+code, func(t *testing.T) {
				lab.InBubble(t, func(t *testing.T, w *lab.World) {
					holder, _ := w.Client(lab.Config())
					unblock := b.block(w, holder)
					var events eventLog
					cfg := lab.Config()
					cfg.OnEvent = events.onEvent
					c, wire := w.Client(cfg)
					ended := make(chan error, 1)
					go func() { ended <- b.wait(t.Context(), c) }()
					lab.Elapse(2 * time.Second)
					wire.SetFault(refusing(code))
					lab.Elapse(2 * time.Second)
					wire.SetFault(nil)
					told := events.of(leasehold.EventWaitError)
					if len(told) == 0 || !strings.Contains(told[0].Err.Error(), refusals[code]) {
						t.Errorf("told %v", told)
					}
					lab.Elapse(time.Second)
					unblock()
					lab.Elapse(5 * time.Second)
					granted(t, ended)
					_ = c.Close(t.Context())
					_ = holder.Close(t.Context())
				})
			})
		}
	}
}

func TestWaitUnderSharedLeaseContinuesAfterRefusal(t *testing.T) {
	for code := range refusals {
		t.Run(code, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				holder, _ := w.Client(lab.SharedConfig())
				lock := w.Acquire(holder, "job")
				c, wire := w.Client(lab.SharedConfig())
				ended := make(chan error, 1)
				go func() { ended <- lab.ErrorOf(c.Acquire(t.Context(), "job")) }()
				lab.Elapse(2 * time.Second)
				wire.SetFault(refusing(code))
				lab.Elapse(30 * time.Second) // the waiter's own session is lost
				w.Release(lock)
				lab.Elapse(2 * time.Second)
				wire.SetFault(nil)
				lab.Elapse(5 * time.Second)
				granted(t, ended)
				_ = c.Close(t.Context())
				_ = holder.Close(t.Context())
			})
		})
	}
}

func TestWaitThatEndsDuringRefusalReportsRefusal(t *testing.T) {
	for name, b := range blocked {
		for code, advice := range refusals {
			t.Run(name+"/"+code, func(t *testing.T) {
				lab.InBubble(t, func(t *testing.T, w *lab.World) {
					holder, _ := w.Client(lab.Config())
					defer b.block(w, holder)()
					var events eventLog
					cfg := lab.Config()
					cfg.OnEvent = events.onEvent
					c, wire := w.Client(cfg)
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
					defer cancel()
					time.AfterFunc(2*time.Second, func() { wire.SetFault(refusing(code)) })
					err := b.wait(ctx, c)
					if name == "lead" { // lead returns the cause of the end of its context
						if !errors.Is(err, context.DeadlineExceeded) {
							t.Error(err)
						}
					} else if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, leasehold.ErrHeld) || !strings.Contains(err.Error(), advice) {
						t.Errorf("ended with %v", err)
					}
					if n := len(events.of(leasehold.EventWaitError)); n < 4 || n > 6 {
						t.Errorf("told %d times in five minutes", n)
					}
					wire.SetFault(nil)
					_ = c.Close(t.Context())
				})
			})
		}
	}
}

func TestWaitErrorAfterTemporaryRefusalNamesOnlyHolder(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, _ := w.Client(lab.Config())
		defer blockJob(w, holder)()
		c, wire := w.Client(lab.Config())
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		time.AfterFunc(2*time.Second, func() { wire.SetFault(refusing("ExpiredTokenException")) })
		time.AfterFunc(4*time.Second, func() { wire.SetFault(nil) })
		_, err := c.Acquire(ctx, "job")
		if op := (*leasehold.OpError)(nil); !errors.Is(err, leasehold.ErrHeld) || errors.As(err, &op) {
			t.Errorf("ended with %v", err)
		}
		_ = c.Close(t.Context())
	})
}

func TestRefusalOfFirstRequestEndsCall(t *testing.T) {
	for code, advice := range refusals {
		for _, accepted := range []bool{false, true} {
			if accepted && code != "AccessDeniedException" {
				continue // skipped, as this refusal counts as temporary
			}
			t.Run(map[bool]string{false: "first of the client/", true: "first of the call/"}[accepted]+code, func(t *testing.T) {
				for name, wait := range waits {
					lab.InBubble(t, func(t *testing.T, w *lab.World) {
						c, wire := w.Client(lab.Config())
						if accepted {
							w.Release(w.Acquire(c, "other"))
						}
						wire.SetFault(refusing(code))
						began := time.Now()
						err := wait(t.Context(), c)
						if op := (*leasehold.OpError)(nil); !errors.As(err, &op) || !strings.Contains(err.Error(), advice) || time.Since(began) > time.Second {
							t.Errorf("%s: after %v: %v", name, time.Since(began), err)
						}
						for _, err := range c.Watch(t.Context(), "job") {
							if err == nil || !strings.Contains(err.Error(), advice) {
								t.Errorf("watch: %v", err)
							}
						}
						_ = c.Close(t.Context())
					})
				}
			})
		}
	}
}

func TestAcquireInLocalQueueContinuesAfterDenial(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		ended := make(chan error, 1)
		go func() { ended <- lab.ErrorOf(c.Acquire(t.Context(), "job", leasehold.Once("work"))) }() // this call requests the key itself
		lab.Elapse(time.Second)
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Releases() {
				return r.Send()
			}
			return lab.Refusal(400, "AccessDeniedException"), nil
		})
		w.Release(lock)
		lab.Elapse(time.Second)
		wire.SetFault(nil)
		lab.Elapse(5 * time.Second)
		granted(t, ended)
		_ = c.Close(t.Context())
	})
}

func TestWatchContinuesAfterTemporaryRefusal(t *testing.T) {
	for code, advice := range refusals {
		t.Run(code, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				holder, _ := w.Client(lab.Config())
				lock := w.Acquire(holder, "job")
				var events eventLog
				cfg := lab.Config()
				cfg.OnEvent = events.onEvent
				c, wire := w.Client(cfg)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				var free bool
				go func() {
					var last error
					for seen, err := range c.Watch(ctx, "job") {
						free, last = seen.Holder == nil, err
					}
					ended <- last
				}()
				lab.Elapse(2 * time.Second)
				wire.SetFault(refusing(code))
				lab.Elapse(5 * time.Second)
				if told := events.of(leasehold.EventWaitError); len(told) != 1 || !strings.Contains(told[0].Err.Error(), advice) {
					t.Errorf("told %v", told)
				}
				lab.Elapse(2 * time.Minute)
				if n := len(events.of(leasehold.EventWaitError)); n != 3 {
					t.Errorf("told %d times in two minutes", n)
				}
				w.Release(lock)
				wire.SetFault(nil)
				lab.Elapse(5 * time.Second)
				cancel()
				if err := <-ended; err != nil || !free {
					t.Errorf("free %v: %v", free, err)
				}
			})
		})
	}
}
