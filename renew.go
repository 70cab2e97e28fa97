package leasehold

import (
	"context"
	"errors"
	"fmt"

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
	if err := noneNil(h.c, "renew", h.key, opts); err != nil {
		return err
	}
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
	var err error
	if _, unknown := h.c.outlive(ctx, h.lease, func() { err = h.renewUntil(ctx, r) }); unknown != nil {
		return h.c.unknownOutcome("renew", h.key, unknown)
	}
	return err
}

// renewUntil renews for a caller.
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

// Extended has nothing to do: nobody else is trusted for longer.
func (h *holding) Extended() {}

// Renewed tells of a renewal, and removes the dead readers that it showed.
func (h *holding) Renewed(r lease.Report) {
	if r.Item != nil {
		h.c.seek.Sweep(h.ctx, &h.want.Want, r.Item)
	}
	h.ownRow.Renewed(r)
}
