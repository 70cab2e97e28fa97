package hold

import (
	"context"
	"time"
)

// atLeast returns a context that ends with ctx, but not before grace has passed.
func atLeast(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	over := make(chan struct{})
	timer := time.AfterFunc(grace, func() { close(over) })
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-over:
		case <-out.Done():
		}
		cancel(context.Cause(ctx))
	})
	return out, func() {
		timer.Stop()
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
