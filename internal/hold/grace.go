package hold

import (
	"context"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
)

// atLeastGrace returns a context that ends with ctx, but not before ReleaseGrace has passed.
func (c *Client) atLeastGrace(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	began := c.Now().Mono
	stop := context.AfterFunc(ctx, func() {
		attempts.Wait(out, c.ReleaseGrace-(c.Now().Mono-began))
		cancel(context.Cause(ctx))
	})
	return out, func() {
		stop()
		cancel(context.Canceled)
	}
}

// AwaitGrace waits until done, or until ReleaseGrace has passed.
func (c *Client) AwaitGrace(done <-chan struct{}) {
	grace := time.NewTimer(c.ReleaseGrace)
	defer grace.Stop()
	select {
	case <-done:
	case <-grace.C:
	}
}

// endedContext is the ctx of a release that takes ReleaseGrace, and no more.
func endedContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
