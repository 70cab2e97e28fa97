package leasehold

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
)

// refuses says why a grant is not shared with a request that belongs to it.
func (h *holding) refuses(want *request) error {
	switch {
	case !want.mayShare(h):
		return fmt.Errorf("%w: %v in table %s: a read lock does not become a write lock, nor a plain one: release it first", ErrDeadlock, want.key(), h.c.cfg.Table)
	case !want.reentrant:
		return fmt.Errorf("%w: %v in table %s: use Reentrant to share the grant", ErrDeadlock, want.key(), h.c.cfg.Table)
	}
	if differs := h.differsFrom(want); differs != "" {
		return fmt.Errorf("leasehold: acquire %v in table %s: Reentrant shares the grant as it is, and %s", want.key(), h.c.cfg.Table, differs)
	}
	return nil
}

// differsFrom says what was asked for that the grant is not and the record does
// not show; empty: nothing. It sends nothing, so that it can store nothing.
func (h *holding) differsFrom(want *request) string {
	r, lease := h.currentRecord(), h.lease.Duration()
	switch {
	case want.asked.lease != 0 && want.asked.lease != lease:
		return fmt.Sprintf("its lease is %v, not %v: change it with Renew", lease, want.asked.lease)
	case want.asked.policy != byConfig && want.policy != h.want.policy:
		return "what becomes of its record is settled: say so in the first call, or in Release"
	case !want.changes().alreadyIn(r):
		return "its record has other data or attributes: store them with Renew"
	}
	return ""
}

// alreadyIn reports whether the changes would leave a record as it is.
func (ch changes) alreadyIn(r Record) bool {
	if ch.SetData && ((ch.Data == nil) != (r.Data == nil) || !bytes.Equal(ch.Data, r.Data)) {
		return false
	}
	if !ch.SetData && ch.InitialData != nil && r.Data == nil {
		return false
	}
	for name, v := range ch.Attributes {
		if v == nil && r.Attributes[name] != nil || v != nil && !reflect.DeepEqual(v, r.Attributes[name]) {
			return false
		}
	}
	return true
}

// share makes another handle on the same grant, with the expiry warnings asked for.
func (h *holding) share(ctx context.Context, want *request) (*Lock, error) {
	l := h.newHandle(ctx)
	err := h.ended()
	if err == nil && h.c.isClosing() { // Close may not have seen the handle
		err = ErrClosed
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		err = h.lease.Cause()
	}
	if err != nil {
		err = h.naming(err)
		h.dropHandle(l)
		l.cancel(err)
		return nil, err
	}
	l.warn(want.warnings)
	return l, nil
}
