package leasehold

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/hold"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// newHolds returns what the client holds: nothing yet.
func newHolds(c *Client) *hold.Client {
	holds := &hold.Client{
		Table: c.cfg.Table, Requests: c.requests, Proto: c.proto, Timing: c.timing, Owner: c.cfg.Owner,
		Log: c.log, Now: c.now, Wall: c.wall, PollMin: c.cfg.PollMin, PollMax: c.cfg.PollMax,
		ReleaseGrace: c.cfg.ReleaseGrace, Retention: c.cfg.Retention, Concurrency: c.cfg.RenewConcurrency,
		DeletesByDefault: c.cfg.deletesByDefault(), Errors: holdErrors{c}, Listener: holdListener{c},
		Grew: func(held int) {
			if held/locksPerConnection > c.connections.idle {
				c.connections.check(c.cfg.RenewConcurrency, held, c.log)
			}
		},
	}
	holds.Begin(c.cfg.SharedLease)
	return holds
}

// holdErrors are the errors of what is held.
type holdErrors struct{ c *Client }

func (e holdErrors) Lost(l hold.Loss) error {
	lost := &LostError{Table: e.c.cfg.Table, Key: Key(l.Key), Token: l.Token, Reason: LostReason(l.Reason), At: l.At, Err: l.Err}
	if l.By != nil {
		by := recordOf(*l.By)
		lost.By = &by
	}
	return lost
}

func (e holdErrors) Loss(err error) (hold.Loss, bool) {
	lost := (*LostError)(nil)
	if !errors.As(err, &lost) {
		return hold.Loss{}, false
	}
	return hold.Loss{Reason: hold.Reason(lost.Reason), Err: lost.Err}, true
}

func (e holdErrors) Failed(op string, key protocol.Key, err error) error {
	return opError(op, e.c.cfg.Table, Key(key), err)
}

func (e holdErrors) Unreadable(key protocol.Key, item protocol.Item, err error) error {
	return e.c.recordError(Key(key), item, err)
}

func (e holdErrors) Uncommitted(key protocol.Key, reasons []types.CancellationReason, err error) error {
	return &CommitError{Table: e.c.cfg.Table, Key: Key(key), Reasons: reasons, Err: err}
}

func (e holdErrors) Unsupported(feature string) error { return e.c.cfg.unsupported(feature) }

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
