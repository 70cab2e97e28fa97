package leasehold

import (
	"context"
	"fmt"

	"github.com/leasehold-go/leasehold/internal/hold"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// refuses says why a grant is not shared with a request that belongs to it.
func (r *request) refuses(c *Client, h *hold.Lock) error {
	switch mode := h.Want().Mode; {
	case mode != r.Mode && (mode != protocol.ModeWrite || r.Mode != protocol.ModeRead):
		return fmt.Errorf("%w: %v in table %s: a read lock does not become a write lock, nor a plain one: release it first", ErrDeadlock, r.key(), c.cfg.Table)
	case !r.reentrant:
		return fmt.Errorf("%w: %v in table %s: use Reentrant to share the grant", ErrDeadlock, r.key(), c.cfg.Table)
	}
	if differs := r.differsFrom(h); differs != "" {
		return c.errorf("acquire", r.key(), "Reentrant shares the grant as it is, and %s", differs)
	}
	return nil
}

// differsFrom says what was asked for that the grant is not and the record does
// not show; empty: nothing. It sends nothing, so that it can store nothing.
func (r *request) differsFrom(h *hold.Lock) string {
	switch lease := h.Duration(); {
	case r.lease != 0 && r.lease != lease:
		return fmt.Sprintf("its lease is %v, not %v: change it with Renew", lease, r.lease)
	case r.policy != byConfig && r.Delete != h.Want().Delete:
		return "what becomes of its record is settled: say so in the first call, or in Release"
	case !r.Once.None() && r.Once != h.Want().Once:
		return "it was not acquired for that work, which is to be done once: release it first"
	case !r.Changes.In(h.Record()):
		return "its record has other data or attributes: store them with Renew"
	}
	return ""
}

// share makes another handle on the same grant, with the expiry warnings asked for.
func (c *Client) share(ctx context.Context, h *hold.Lock, want *request) (*Lock, error) {
	l := newLock(c)
	l.h.Once = !want.Once.None()
	if err := h.Share(ctx, &l.h, l.warned(want.warnings)); err != nil {
		return nil, err
	}
	return l, nil
}
