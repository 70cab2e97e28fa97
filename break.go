package leasehold

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/seek"
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
	if !c.holds.Enter() {
		return c.afterClose("break", key)
	}
	defer c.holds.Leave()
	ctx, stop := c.holds.UntilClosing(ctx)
	defer stop()
	told := make(chan error, 1)
	var now attempts.Latest
	now.Begin(&attempts.Sequence[seek.Attempt]{}) // one request is sent, however soon ctx ends
	_, unknown := attempts.Outlive(ctx, c.holds.Detach, &now, func() {
		err = c.breakGrant(ctx, r, b, &now)
		if err == nil || errors.Is(err, ErrUnknownOutcome) {
			c.holds.Detach(func() { told <- c.tellHolder(ctx, r) })
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
func (c *Client) breakGrant(ctx context.Context, r Record, b breaking, now *attempts.Latest) error {
	proto, at := c.protoOfRecord(r), c.wall()
	expires := func() time.Time { return c.holds.Expires(protocol.Changes{}.LeaveData(r.protocol())) }
	if c.isSession(r.Key) {
		expires = c.holds.DeadExpires
		b.unrenewed = true // a session that is renewed lives, and all its locks with it
	}
	for {
		var tried attempts.Sequence[seek.Attempt]
		now.Begin(&tried)
		res := tried.Run(context.WithoutCancel(ctx), ctx, c.requests, attempts.Operation[seek.Attempt]{
			Key: protocol.Key(r.Key),
			Next: func() (seek.Attempt, *protocol.Write) {
				a := c.seek.Attempt(0, nil)
				return a, proto.Break(r.protocol(), protocol.Break{
					Version: a.Version, Expires: expires(), By: c.owner, At: at, Reason: b.reason,
				})
			},
			Shows: func(item protocol.Item, sent []seek.Attempt) (seek.Attempt, bool) {
				return c.showsBreak(proto, item, sent)
			},
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
func (c *Client) showsBreak(proto protocol.Protocol, item protocol.Item, sent []seek.Attempt) (seek.Attempt, bool) {
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

// tellHolder tells the session of r, if it is under one, that the grant in r was broken,
// or may have been. It tries until limit ends, and once at least.
func (c *Client) tellHolder(limit context.Context, r Record) error {
	proto, ok := c.proto.(protocol.Sharing)
	if !ok || r.Session == "" {
		return nil
	}
	key, word, ctx := proto.SessionKey(r.Session), protocol.NewVersion(), context.WithoutCancel(limit)
	throttled := c.throttled(ctx, r.Key, r.Token)
	err := c.requests.Repeat(limit, func() error {
		reply := c.requests.Write(ctx, proto.TellBroken(r.Session, word, r.Grant), attempts.Limit)
		switch {
		case reply.Effect == decide.Applied:
			return nil
		case reply.Cause != decide.ConditionFailed:
			return &attempts.Failure{Cause: reply.Cause, Outage: reply.Outage, Err: reply.Err}
		}
		row := reply.Old
		if row == nil { // there is none, or the engine does not return it
			var err error
			if row, err = c.requests.Read(ctx, key); err != nil {
				return err
			}
		}
		return c.whyUntold(proto, key, row)
	}, func(f *attempts.Failure) error {
		if f.Cause == decide.Busy {
			throttled(f.Err)
		}
		return nil
	})
	if err == nil {
		return nil
	}
	if f := attempts.FailureOf(err); f != nil {
		err = f.Err
	}
	return c.untold(r.Key, errors.Join(context.Cause(limit), err))
}

// whyUntold says why the row of a session takes no word of a break. nil: its locks have
// ended with it, and there is nobody to tell.
func (c *Client) whyUntold(proto protocol.Sharing, key protocol.Key, row protocol.Item) error {
	if row == nil {
		return nil
	}
	shown, err := proto.Session().Decode(row)
	switch {
	case err != nil:
		return c.recordError(Key(key), row, err)
	case shown.Released:
		return nil
	}
	return errors.New("its client is of a version that cannot be told")
}

// untold says that a grant is broken, and what comes of it that its holder is not told.
func (c *Client) untold(key Key, err error) error {
	return opError("break", c.cfg.Table, key, fmt.Errorf(
		"%w: the key is free, and the holder, if it lives, learns of it within twenty minutes; its commits fail at once: %w", ErrHolderUntold, err))
}
