package leasehold

import (
	"context"

	"github.com/leasehold-go/leasehold/internal/breaking"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Break frees the grant in r, as Get or List returned it, whoever holds it. If the
// record shows another grant by now, nothing is freed and the error is a
// *ChangedError. The holder learns of it at its next renewal, or at that of its shared
// lease: until then its unfenced work may overlap with the next holder's; its Commits
// fail at once. ErrHolderUntold if the grant is broken, and the shared lease that it was
// under could not be told, for one because its client is of an older version: then the
// holder learns within twenty minutes.
// ErrUnknownOutcome if ctx ended without an answer, and, joined with the
// *ChangedError or ErrNotFound, if a reply was lost: then Break itself may have
// freed the grant before the record changed. With a ctx that has ended before,
// nothing is sent.
//
// The record keeps who broke it, when and why (Record.Broken), and the holder is told
// it in its LostError; in layouts whose free keys have no record, nobody can be told.
//
// A record under the key of a shared lease's row, which neither Get nor List returns,
// ends that lease, and frees all its locks, if the row still has the record's Version.
func (c *Client) Break(ctx context.Context, r Record, opts ...BreakOption) error {
	b := breaking.Request{Grant: r.protocol()}
	if err := noneNil(c, "break", r.Key, opts); err != nil {
		return err
	}
	for _, o := range opts {
		o.toBreak(&b)
	}
	key, err := c.checkKey("break", r.Key)
	if err != nil {
		return err
	}
	b.Grant.Key = protocol.Key(key)
	if r.Version == "" {
		return c.errorf("break", key, "the record lacks its version: pass one that Get or List returned")
	}
	if b.Reason != "" && !c.caps.KeepOnRelease {
		return c.cfg.unsupported("reason of Break: a free key has no record")
	}
	if problem := protocol.ReasonProblem(b.Reason); problem != "" {
		return c.errorf("break", key, "%s", problem)
	}
	if ctx.Err() != nil {
		return c.errorf("break", key, "%w", context.Cause(ctx))
	}
	if !c.holds.Enter() {
		return c.afterClose("break", key)
	}
	defer c.holds.Leave()
	ctx, stop := c.holds.UntilClosing(ctx)
	defer stop()
	return c.breaks.Break(ctx, b)
}

// newBreaks returns what breaks grants for the client.
func newBreaks(c *Client) *breaking.Client {
	return &breaking.Client{
		Requests: c.requests, Proto: c.proto, Caps: c.caps, Owner: c.owner, Wall: c.wall, Expires: c.holds.Expires,
		DeadExpires: c.holds.DeadExpires, Detach: c.holds.Detach, Errors: userErrors{c},
		Throttled: func(ctx context.Context, key protocol.Key, token int64, err error) {
			c.emit(ctx, Event{Kind: EventThrottled, Key: Key(key), Token: token, Requests: 1, Err: err})
		},
	}
}
