package leasehold_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
)

func TestAResumeIsAcceptedAfterHundredsThatHadNoAnswer(t *testing.T) {
	for name, unanswered := range map[string]func(context.Context, call, func() (*http.Response, error)) (*http.Response, error){
		"none of them arrived": func(context.Context, call, func() (*http.Response, error)) (*http.Response, error) {
			return nil, errReset
		},
		"all of them landed": loseReply,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				cfg := config()
				cfg.Lease = time.Hour
				c, wire := w.client(cfg)
				g, err := w.acquire(c, "deploy").Detach()
				if err != nil {
					t.Fatal(err)
				}
				wire.setFault(func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
					if c.op != "UpdateItem" {
						return next()
					}
					return unanswered(ctx, c, next)
				})
				for range 200 {
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
					if _, err := c.Resume(ctx, g); !errors.Is(err, leasehold.ErrUnknownOutcome) {
						t.Fatalf("without an answer: %v", err)
					}
					cancel()
				}
				wire.setFault(nil)
				lock, err := c.Resume(t.Context(), g)
				if err != nil {
					t.Fatalf("with one: %v", err)
				}
				w.release(lock)
			})
		})
	}
}

func TestAResumeWithoutANetworkEndsWithItsContextHoweverOftenItWasTried(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		cfg := config()
		cfg.Lease = time.Hour
		c, wire := w.client(cfg)
		g, err := w.acquire(c, "deploy").Detach()
		if err != nil {
			t.Fatal(err)
		}
		wire.setFault(func(context.Context, call, func() (*http.Response, error)) (*http.Response, error) {
			return nil, errReset
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
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		whole, err := w.acquire(c, "deploy").Detach()
		if err != nil {
			t.Fatal(err)
		}
		wire.sent()
		for missing, g := range map[string]leasehold.Grant{
			"table, key, owner, token, id, versions, lease": {},
			"versions": func() leasehold.Grant { g := whole; g.Versions = nil; return g }(),
			"key, id":  func() leasehold.Grant { g := whole; g.Key, g.ID = leasehold.Key{}, ""; return g }(),
		} {
			_, err := c.Resume(t.Context(), g)
			if err == nil || !strings.Contains(err.Error(), "lacks its "+missing+":") || len(wire.sent()) != 0 {
				t.Errorf("want %q missing: %v", missing, err)
			}
		}
	})
}
