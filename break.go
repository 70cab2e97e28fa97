package leasehold

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
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
	var b breaking
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
		return c.afterClose("break", key)
	}
	defer c.leave()
	ctx, stop := c.untilClosing(ctx)
	defer stop()
	told := make(chan error, 1)
	var now latest
	now.begin(&attempts.Sequence[attempt]{}) // one request is sent, however soon ctx ends
	_, unknown := c.outlive(ctx, &now, func() {
		err = c.breakGrant(ctx, r, b, &now)
		if err == nil || errors.Is(err, ErrUnknownOutcome) {
			c.detach(func() { told <- c.tellHolder(ctx, r) })
		}
	})
	if unknown != nil {
		return c.unknownOutcome("break", key, unknown)
	}
	if err != nil {
		return err
	}
	select {
	case err = <-told:
		return err
	case <-ctx.Done():
		return c.untold(key, context.Cause(ctx))
	}
}

func (c *Client) checkReason(key Key, reason string) error {
	if reason == "" {
		return nil
	}
	if !c.caps.KeepOnRelease {
		return c.unsupported("reason of Break: a free key has no record")
	}
	if problem := protocol.ReasonProblem(reason); problem != "" {
		return c.errorf("break", key, "%s", problem)
	}
	return nil
}

// breakGrant sends the break of the grant in r until it is answered. If that grant has
// been renewed since, it breaks what the record shows now, by other attempts: now holds
// those under way.
func (c *Client) breakGrant(ctx context.Context, r Record, b breaking, now *latest) error {
	proto, at := c.protoOfRecord(r), c.wall()
	expires := func() time.Time { return c.expires(changes{}.leaveData(r)) }
	if c.isSession(r.Key) {
		expires = c.deadExpires
		b.unrenewed = true // a session that is renewed lives, and all its locks with it
	}
	for {
		var tried attempts.Sequence[attempt]
		now.begin(&tried)
		res := tried.Run(context.WithoutCancel(ctx), ctx, c.requests, attempts.Operation[attempt]{
			Key: protocol.Key(r.Key),
			Next: func() (attempt, *protocol.Write) {
				a := c.newAttempt(0)
				return a, proto.Break(r.protocol(), protocol.Break{
					Version: a.Version, Expires: expires(), By: c.owner, At: at, Reason: b.reason,
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
