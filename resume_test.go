package leasehold_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestAResumeIsAcceptedAfterHundredsThatHadNoAnswer(t *testing.T) {
	for name, unanswered := range map[string]lab.Fault{
		"none of them arrived": func(*lab.Request) (*http.Response, error) {
			return nil, lab.ErrReset
		},
		"all of them landed": lab.LoseReply,
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				cfg := lab.Config()
				cfg.Lease = time.Hour
				c, wire := w.Client(cfg)
				g := w.Detach(w.Acquire(c, "deploy"))
				wire.SetFault(func(r *lab.Request) (*http.Response, error) {
					if r.Op != "UpdateItem" {
						return r.Send()
					}
					return unanswered(r)
				})
				for range 200 {
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
					if _, err := c.Resume(ctx, g); !errors.Is(err, leasehold.ErrUnknownOutcome) {
						t.Fatalf("without an answer: %v", err)
					}
					cancel()
				}
				wire.SetFault(nil)
				lock, err := c.Resume(t.Context(), g)
				if err != nil {
					t.Fatalf("with one: %v", err)
				}
				w.Release(lock)
			})
		})
	}
}

func TestAResumeWithoutANetworkEndsWithItsContextHoweverOftenItWasTried(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := lab.Config()
		cfg.Lease = time.Hour
		c, wire := w.Client(cfg)
		g := w.Detach(w.Acquire(c, "deploy"))
		wire.SetFault(func(*lab.Request) (*http.Response, error) {
			return nil, lab.ErrReset
		})
		for range 50 {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			began := time.Now()
			if _, err := c.Resume(ctx, g); !errors.Is(err, leasehold.ErrUnknownOutcome) || time.Since(began) > 5*time.Second {
				t.Fatalf("error %v after %v", err, time.Since(began))
			}
			cancel()
		}
	})
}

func TestWhatAGrantLacksIsNamed(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		whole := w.Detach(w.Acquire(c, "deploy"))
		wire.Sent()
		for missing, g := range map[string]leasehold.Grant{
			"table, key, owner, token, id, versions, lease": {},
			"versions": func() leasehold.Grant { g := whole; g.Versions = nil; return g }(),
			"key, id":  func() leasehold.Grant { g := whole; g.Key, g.ID = leasehold.Key{}, ""; return g }(),
		} {
			_, err := c.Resume(t.Context(), g)
			if err == nil || !strings.Contains(err.Error(), "lacks its "+missing+":") || len(wire.Sent()) != 0 {
				t.Errorf("want %q missing: %v", missing, err)
			}
		}
	})
}

func TestAResumeAcceptsItsOwnAttemptOfLongAgo(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		g := w.Detach(w.Acquire(c, "deploy"))
		over := time.Now().Add(30 * time.Second) // longer than the lease
		wire.SetFault(lab.Once(lab.Call.Renews, func(r *lab.Request) (*http.Response, error) {
			wire.SetFault(func(r *lab.Request) (*http.Response, error) {
				if time.Now().Before(over) {
					return lab.Refusal(400, "ThrottlingException"), nil
				}
				return r.Send()
			})
			return lab.LoseReply(r)
		}))
		lock, err := c.Resume(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		w.Release(lock)
	})
}

func TestOfTwoResumesAtOnceOneIsRefused(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		g := w.Detach(w.Acquire(c, "deploy"))
		wire.SetFault(lab.Once(lab.Call.Renews, lab.Slow(2*time.Second))) // applied at once, answered late
		ended := make(chan error, 2)
		resume := func() {
			_, err := c.Resume(t.Context(), g)
			ended <- err
		}
		go resume()
		lab.Elapse(time.Second)
		go resume()
		first, second := <-ended, <-ended
		if first != nil || !errors.Is(second, leasehold.ErrLost) {
			t.Errorf("one: %v, the other: %v", first, second)
		}
		if held := c.Held(); len(held) != 1 {
			t.Errorf("held %d times", len(held))
		}
		_ = c.Close(t.Context())
	})
}

func TestAResumeWhoseCallerLeftIsLaidDownForTheNext(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		g := w.Detach(w.Acquire(c, "deploy"))
		wire.SetFault(lab.Once(lab.Call.Renews, lab.Slow(2*time.Second)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Resume(ctx, g); !errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("left: %v", err)
		}
		lock, err := c.Resume(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		w.Release(lock)
	})
}

func TestAResumeThatComesAfterCloseIsGivenBack(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		g := w.Detach(w.Acquire(c, "deploy"))
		wire.SetFault(lab.Once(lab.Call.Renews, lab.Slow(2*time.Second)))
		ended := make(chan error, 1)
		go func() {
			_, err := c.Resume(t.Context(), g)
			ended <- err
		}()
		lab.Elapse(time.Second)
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, leasehold.ErrClosed) {
			t.Errorf("resume: %v", err)
		}
		if lab.Text(w.Item("deploy"), "isReleased") != "1" {
			t.Errorf("record %v", w.Item("deploy"))
		}
	})
}
