package leasehold

import (
	"context"

	"github.com/leasehold-go/leasehold/internal/hold"
)

// Renew renews now, and changes data, attributes or lease if opts say so.
// Needed only with WithoutRenewal or to store something. Failures are retried
// until ctx or the trust ends. When ctx ends while an attempt is without an
// answer the error is ErrUnknownOutcome: the lease may be renewed, the data
// stored. With a ctx that has ended before, nothing is sent.
func (l *Lock) Renew(ctx context.Context, opts ...RenewOption) error {
	c, h := l.c, l.h.Lock()
	var r hold.Renewal
	if err := noneNil(c, "renew", l.Key(), opts); err != nil {
		return err
	}
	for _, o := range opts {
		o.toRenew(&r)
	}
	if err := l.Err(); err != nil {
		return err
	}
	if r.Lease != 0 {
		if h.UnderSession() {
			return c.cfg.unsupported("WithLease together with SharedLease")
		}
		if err := c.checkLease("renew", l.Key(), r.Lease); err != nil {
			return err
		}
	}
	if err := c.cfg.checkAlone(h.Want().Mode, false, r.Changes); err != nil {
		return err
	}
	if err := c.checkChanges("renew", l.Key(), r.Changes); err != nil {
		return err
	}
	return l.h.Renew(ctx, r)
}
