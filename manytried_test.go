package leasehold_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
)

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
			inBubble(t, func(t *testing.T, w *world) {
				c, wire := w.client(config())
				var asked atomic.Int32
				wire.setFault(func(_ context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
					if c.grants() && asked.Add(1) <= 250 {
						return nil, errReset
					}
					return next()
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
