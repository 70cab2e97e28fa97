package leasehold

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"unicode/utf8"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

// Break frees the grant in r, as Get or List returned it, whoever holds it. If the
// record shows another grant by now, nothing is freed and the error is a
// *ChangedError. The holder learns of it at its next renewal: until then its
// unfenced work may overlap with the next holder's; its Commits fail at once.
// ErrUnknownOutcome if ctx ended without an answer, and, joined with the
// *ChangedError or ErrNotFound, if a reply was lost: then Break itself may have
// freed the grant before the record changed. With a ctx that has ended before,
// nothing is sent.
//
// The record keeps who broke it, when and why (Record.Broken), and the holder is told
// it in its LostError; in layouts whose free keys have no record, nobody can be told.
func (c *Client) Break(ctx context.Context, r Record, opts ...BreakOption) error {
	var b breaking
	for _, o := range opts {
		o.toBreak(&b)
	}
	key, err := c.checkKey("break", r.Key)
	if err != nil {
		return err
	}
	r.Key = key
	if r.Version == "" {
		return c.errorf("break", key, "the record lacks its version: pass one that Get or List returned")
	}
	if err := c.checkReason(key, b.reason); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return c.errorf("break", key, "%w", context.Cause(ctx))
	}
	if !c.enter() {
		return ErrClosed
	}
	defer c.leave()
	ctx, stop := c.untilClosing(ctx)
	defer stop()
	done := make(chan error, 1)
	var now atomic.Pointer[attempts.Sequence[attempt]]
	c.detach(func() { done <- c.breakGrant(ctx, r, b, &now) })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	if tried := now.Load(); tried != nil && tried.Answered() {
		return <-done // at once: no other request is begun
	}
	return c.unknownOutcome("break", key, context.Cause(ctx))
}

// maxReason is the most bytes of a reason: it stays in the record, and is one line of
// what its holder is told.
const maxReason = 1000

func (c *Client) checkReason(key Key, reason string) error {
	switch {
	case reason == "":
		return nil
	case !c.caps.KeepOnRelease:
		return c.unsupported("reason of Break: a free key has no record")
	case len(reason) > maxReason:
		return c.errorf("break", key, "the reason has %d bytes: use at most %d", len(reason), maxReason)
	case !utf8.ValidString(reason):
		return c.errorf("break", key, "the reason is not UTF-8")
	}
	return nil
}

// breakGrant sends the break of the grant in r until it is answered. If that grant has
// been renewed since, it breaks what the record shows now, by other attempts: now holds
// those under way.
func (c *Client) breakGrant(ctx context.Context, r Record, b breaking, now *atomic.Pointer[attempts.Sequence[attempt]]) error {
	proto := c.protoOfRecord(r)
	at := c.wall()
	for {
		var tried attempts.Sequence[attempt]
		now.Store(&tried)
		res := tried.Run(context.WithoutCancel(ctx), ctx, c.requests, attempts.Operation[attempt]{
			Key: protocol.Key(r.Key),
			Next: func() (attempt, *protocol.Write) {
				a := c.newAttempt(0)
				return a, proto.Break(r.protocol(), protocol.Break{
					Version: a.Version, Expires: c.expires(changes{}.leaveData(r)), By: c.owner, At: at, Reason: b.reason,
				})
			},
			Shows:     func(item protocol.Item, sent []attempt) (attempt, bool) { return c.showsBreak(proto, item, sent) },
			Throttled: c.throttled(ctx, r.Key, 0),
		})
		switch res.Outcome {
		case attempts.Applied:
			return nil
		case attempts.Unanswered:
			return c.unknownOutcome("break", r.Key, errors.Join(context.Cause(ctx), res.Err))
		case attempts.Rejected:
		default:
			return opError("break", c.cfg.Table, r.Key, errors.Join(context.Cause(ctx), res.Err))
		}
		// One that has had no reply may have freed it before the record changed.
		gone := func(err error) error {
			if tried.Silent() {
				return c.unknownOutcome("break", r.Key, err)
			}
			return err
		}
		if res.Item == nil {
			return gone(fmt.Errorf("%w: %v in table %s", ErrNotFound, r.Key, c.cfg.Table))
		}
		stored, err := proto.Decode(res.Item)
		if err != nil {
			return c.recordError(r.Key, res.Item, err)
		}
		found := recordOf(stored)
		changed := &ChangedError{Table: c.cfg.Table, Now: found}
		if found.Released || !c.sameGrant(r, found) {
			return gone(changed)
		}
		if b.unrenewed || ctx.Err() != nil {
			return changed
		}
		// Renewed since it was read: what the record contains now says whether TTL may
		// delete it.
		r = found
	}
}

// showsBreak returns the attempt that freed the key, as a record shows it. In layouts
// whose free keys have no record, or no version, it may have been any attempt without
// an answer.
func (c *Client) showsBreak(proto protocol.Protocol, item protocol.Item, sent []attempt) (attempt, bool) {
	last, unanswered := sent[len(sent)-1], len(sent) > 1
	if item == nil {
		return last, unanswered && !c.caps.KeepOnRelease
	}
	now, err := proto.Decode(item)
	if err != nil || !now.Released {
		return last, false
	}
	if a, ok := attempts.Find(sent, now.Version); ok {
		return a, true
	}
	return last, unanswered && now.Version == ""
}

// sameGrant reports whether two records of a key show the same grant. A foreign holder
// has no grant id. If its owner has a name, that stays the same while it renews. In
// layouts that go by the clock it does not renew: another version is another grant.
func (c *Client) sameGrant(a, b Record) bool {
	return a.Grant == b.Grant && a.Owner == b.Owner && (a.Grant != "" || a.Owner != "" && c.caps.Expiry == layout.Observed)
}
