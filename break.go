package leasehold

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

// Break frees the grant in r, whoever holds it; if the record shows another
// grant by now, a *ChangedError. The holder learns at its next renewal:
// its unfenced work may overlap with the next holder's, its Commits fail.
// ErrUnknownOutcome if ctx ended without an answer. With a ctx that has ended
// before, nothing is sent.
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
		return fmt.Errorf("leasehold: break %v: the record lacks its version: pass one that Get or List returned", key)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("leasehold: break %v: %w", key, context.Cause(ctx))
	}
	if !c.enter() {
		return ErrClosed
	}
	defer c.leave()
	ctx, stop := c.untilClosing(ctx)
	defer stop()
	done := make(chan error, 1)
	c.detach(func() { done <- c.breakGrant(ctx, r, b) })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return c.unknownOutcome("break", key, context.Cause(ctx))
	}
}

// breakGrant sends the break until it is answered. Each attempt has its own
// version, so that a record it freed is known again.
func (c *Client) breakGrant(ctx context.Context, r Record, b breaking) error {
	var unanswered []string
	proto := c.protoOfRecord(r)
	for n := 0; ; n++ {
		version := protocol.NewVersion()
		w := proto.Break(r.protocol(), version, c.expires(changes{}.leave(r)))
		ans := c.write(ctx, w, attemptLimit)
		switch {
		case ans.Effect == decide.Applied:
			return nil
		case ans.Effect == decide.Unknown:
			unanswered = append(unanswered, version)
		case ans.Cause == decide.Refused:
			return c.breakFailed(r.Key, unanswered, ans.err)
		case ans.Cause == decide.ConditionFailed:
			item, ok := c.shown(ctx, r.Key, ans)
			if !ok {
				break
			}
			if item == nil && len(unanswered) > 0 && !c.caps.KeepOnRelease {
				return nil // which one of them has deleted
			}
			if item == nil {
				return fmt.Errorf("%w: %v in table %s", ErrNotFound, r.Key, c.cfg.Table)
			}
			stored, err := proto.Decode(item)
			now := recordOf(stored)
			switch {
			case err != nil:
				return c.recordError(r.Key, item, err)
			case now.Released && slices.Contains(append(unanswered, version), now.Version):
				return nil
			case now.Released && now.Version == "" && len(unanswered) > 0:
				return nil // free records of this layout do not say whose write freed them
			case !b.unrenewed && !now.Released && c.sameGrant(r, now) && ctx.Err() == nil:
				// Renewed since it was looked at: what it carries by now says
				// whether TTL may collect it.
				r = now
				continue
			default:
				return &ChangedError{Table: c.cfg.Table, Now: now}
			}
		}
		if len(unanswered) < manyTried {
			pause(ctx.Done(), c.backoff(n, time.Second))
		}
		if ctx.Err() != nil || len(unanswered) >= manyTried {
			return c.breakFailed(r.Key, unanswered, errors.Join(context.Cause(ctx), ans.err))
		}
	}
}

// sameGrant reports whether two records of a key show one grant. A foreign holder
// has no grant id: its owner, if it has a name, is what stays the same while it
// renews. In layouts that go by the clock it does not renew: another version is
// another grant.
func (c *Client) sameGrant(a, b Record) bool {
	return a.Grant == b.Grant && a.Owner == b.Owner && (a.Grant != "" || a.Owner != "" && c.caps.Expiry == layout.Observed)
}

// breakFailed is the error of a Break that gives up.
func (c *Client) breakFailed(key Key, unanswered []string, err error) error {
	if len(unanswered) > 0 {
		return c.unknownOutcome("break", key, err)
	}
	return opError("break", c.cfg.Table, key, err)
}
