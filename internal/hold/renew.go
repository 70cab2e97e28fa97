package hold

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

// Renewal has the options of a call of Renew.
type Renewal struct {
	Lease   time.Duration // 0 to keep the current one
	Changes protocol.Changes
}

// Renew renews now, until it is answered, ctx ends or the trust does.
func (l *Handle) Renew(ctx context.Context, r Renewal) error {
	h := l.h
	if ctx.Err() != nil {
		return h.c.Errorf("renew", h.key, "%w", attempts.Cause(ctx))
	}
	var err error
	if _, unknown := attempts.Outlive(ctx, h.c.Detach, h.lease, func() { err = l.renewUntil(ctx, r) }); unknown != nil {
		return h.c.UnknownOutcome("renew", h.key, unknown)
	}
	return err
}

// renewUntil renews for a caller.
func (l *Handle) renewUntil(ctx context.Context, r Renewal) error {
	h := l.h
	unknown, err := h.lease.Renew(ctx, lease.Changes{Lease: r.Lease, Record: r.Changes})
	f := attempts.FailureOf(err)
	switch {
	case err == nil:
		return nil
	case l.ended() != nil:
		return l.ended()
	case f == nil: // nothing was sent
		return err
	case f.Cause == decide.Refused && unknown:
		return h.c.UnknownOutcome("renew", h.key, f.Err)
	case f.Cause == decide.Refused:
		return h.c.Errors.Failed("renew", h.key, f.Err)
	}
	err = attempts.Cause(ctx)
	if unknown {
		err = fmt.Errorf("%w: %w", attempts.ErrUnknownOutcome, err)
	}
	return h.c.Errors.Failed("renew", h.key, errors.Join(err, f.Err))
}

// Extended has nothing to do: nobody else is trusted for longer.
func (h *Lock) Extended() {}

// Renewed reports a renewal, and a request to step down.
func (h *Lock) Renewed(r lease.Report) {
	if h.lease.Record().Asked == h.grant {
		if asked := h.onAsked.Swap(nil); asked != nil {
			(*asked)()
		}
	}
	h.row.Renewed(r)
}

// OnAsked has fn called, once, when a reply to a renewal shows that the holder is asked to
// step down; it and all that were given before. It must not wait. The request stays in the
// record: a listener that comes late is called at the next renewal.
func (h *Lock) OnAsked(fn func()) {
	for {
		before, all := h.onAsked.Load(), fn
		if before != nil {
			all = func() { (*before)(); fn() }
		}
		if h.onAsked.CompareAndSwap(before, &all) {
			return
		}
	}
}
