package leasehold

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Renew renews now, and changes data, attributes or lease if opts say so.
// Needed only with WithoutRenewal or to store something. Failures are retried
// until ctx or the trust ends. When ctx ends while an attempt is without an
// answer the error is ErrUnknownOutcome: the lease may be renewed, the data
// stored. With a ctx that has ended before, nothing is sent.
func (l *Lock) Renew(ctx context.Context, opts ...RenewOption) error {
	h := l.h
	var r renewal
	for _, o := range opts {
		o.toRenew(&r)
	}
	if err := l.Err(); err != nil {
		return err
	}
	if r.lease != 0 {
		if h.session != nil {
			return h.c.unsupported("WithLease together with SharedLease")
		}
		if err := h.c.checkLease("renew", h.key, r.lease); err != nil {
			return err
		}
	}
	if err := h.want.checkAlone(h.c, byConfig, &r.changes); err != nil {
		return err
	}
	if err := h.c.checkChanges("renew", h.key, &r.changes); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return h.c.errorf("renew", h.key, "%w", context.Cause(ctx))
	}
	done := make(chan error, 1)
	h.c.detach(func() { done <- h.renewUntil(ctx, r) })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	return h.c.unknownOutcome("renew", h.key, context.Cause(ctx))
}

// renewUntil renews on behalf of a caller.
func (h *holding) renewUntil(ctx context.Context, r renewal) error {
	unknown, err := h.lease.Renew(ctx, lease.Changes{Lease: r.lease, Record: protocol.Changes(r.changes)})
	f := attempts.FailureOf(err)
	switch {
	case err == nil:
		return nil
	case h.ended() != nil:
		return h.ended()
	case f == nil: // nothing was sent
		return err
	case f.Cause == decide.Refused && unknown:
		return h.c.unknownOutcome("renew", h.key, f.Err)
	case f.Cause == decide.Refused:
		return opError("renew", h.c.cfg.Table, h.key, f.Err)
	}
	err = context.Cause(ctx)
	if unknown {
		err = fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	return &OpError{Op: "renew", Table: h.c.cfg.Table, Key: h.key, Err: errors.Join(err, f.Err)}
}

// A holding spells the renewals of its lease and reads their records, and tells
// what becomes of it: it is a lease.Holder.

// Renewal spells attempt a of a renewal.
func (h *holding) Renewal(a lease.Attempt, versions []string, ch protocol.Changes) *protocol.Write {
	return h.proto.Renew(h.named(versions), protocol.Renewal{Version: a.Version, Lease: a.Lease, Now: time.Now(), Changes: ch})
}

// Decode reads an item as the record of this grant.
func (h *holding) Decode(item protocol.Item) (protocol.Record, error) {
	r, err := h.proto.Decode(item)
	if err != nil {
		return r, h.c.recordError(h.key, item, err)
	}
	return r, nil
}

// Stands reports whether an item shows that the grant stands.
func (h *holding) Stands(item protocol.Item) bool {
	reason, _, _ := h.gone(item)
	return reason == ""
}

// Lost ends the trust.
func (h *holding) Lost(loss lease.Loss) {
	switch loss.Reason {
	case lease.Expired:
		h.lose(LostExpired, nil, loss.Err)
	case lease.Paused:
		h.lose(LostPaused, nil, loss.Err)
	case lease.Unreadable:
		h.lose(LostReplaced, nil, loss.Err)
	case lease.WithParent:
		h.session.loseOne(h) // whoever ended the session may not have come to this one yet
	case lease.Gone:
		reason, by, damage := h.gone(loss.Item)
		if reason == "" { // somebody else renews under our grant: it was resumed elsewhere
			reason = LostReplaced
		}
		h.lose(reason, by, damage)
	}
}

// Extended makes the warnings of a session's locks ready again, which are
// trusted for longer by it.
func (h *holding) Extended() {
	if h.heads != nil {
		h.heads.renewed()
	}
}

// Renewed tells of a renewal.
func (h *holding) Renewed(r lease.Report) {
	if r.Item != nil {
		h.c.sweep(h.ctx, h.want, r.Item)
	}
	h.c.failing.over(h)
	h.c.emit(h.ctx, Event{Kind: EventRenewed, Key: h.key, Token: h.token, Took: r.Took, Requests: r.Requests})
}

// Failed tells of an attempt to renew that was not applied, or had no answer.
func (h *holding) Failed(r lease.Report) {
	h.c.failing.add(h, r.Err)
	if r.Throttled {
		h.c.throttled(h.ctx, h.key, h.token)(r.Err)
	}
	h.c.emit(h.ctx, Event{Kind: EventRenewError, Key: h.key, Token: h.token, Took: r.Took, Remaining: r.Remaining,
		Requests: r.Requests, Err: opError("renew", h.c.cfg.Table, h.key, r.Err)})
}
