package leasehold

import (
	"context"

	"github.com/leasehold-go/leasehold/internal/hold"
)

// newHolds returns what the client holds: nothing yet.
func newHolds(c *Client) *hold.Client {
	holds := &hold.Client{
		Table: c.cfg.Table, Requests: c.requests, Proto: c.proto, Timing: c.timing, Owner: c.cfg.Owner,
		Log: c.log, Now: c.now, Wall: c.wall, PollMin: c.cfg.PollMin, PollMax: c.cfg.PollMax,
		ReleaseGrace: c.cfg.ReleaseGrace, Retention: c.cfg.Retention, Concurrency: c.cfg.RenewConcurrency,
		DeletesByDefault: c.cfg.deletesByDefault(), Errors: userErrors{c}, Listener: holdListener{c},
		Grew: func(held int) {
			if held/locksPerConnection > c.connections.idle {
				c.connections.check(c.cfg.RenewConcurrency, held, c.log)
			}
		},
	}
	holds.Begin(c.cfg.SharedLease)
	return holds
}

// holdListener turns what happens to what is held into events.
type holdListener struct{ c *Client }

func (l holdListener) Renewed(ctx context.Context, e hold.Event) { l.emit(ctx, EventRenewed, e) }
func (l holdListener) RenewFailed(ctx context.Context, e hold.Event) {
	l.emit(ctx, EventRenewError, e)
}
func (l holdListener) Lost(ctx context.Context, e hold.Event)     { l.emit(ctx, EventLost, e) }
func (l holdListener) Released(ctx context.Context, e hold.Event) { l.emit(ctx, EventReleased, e) }
func (l holdListener) Committed(ctx context.Context, e hold.Event) {
	l.emit(ctx, EventCommitted, e)
}
func (l holdListener) Throttled(ctx context.Context, e hold.Event) {
	l.emit(ctx, EventThrottled, e)
}

func (l holdListener) emit(ctx context.Context, kind EventKind, e hold.Event) {
	l.c.emit(ctx, Event{
		Kind: kind, Key: Key(e.Key), Token: e.Token, Took: e.Took, Held: e.Held, Remaining: e.Remaining,
		Requests: e.Requests, Err: e.Err,
	})
}
