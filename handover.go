package leasehold

import (
	"context"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// handOver hands the key to the next in the local line, in one write that ends this
// grant and begins theirs. False: the grant in f.hold must still be released. The next
// may have left while the write was in flight. Then the new grant has no owner here,
// and is handed on.
func (f *freeing) handOver(limit context.Context) (settled bool, err error) {
	h := f.h
	for {
		next := h.c.lines.Successor(h.key, h)
		if next == nil {
			return false, nil
		}
		a, r, err := f.grantTo(limit, next.Caller.want)
		if err != nil || a.version == "" {
			f.failed(ending{policy: keepRecord}, err)
			if !h.c.lines.LetSeek(next) {
				h.c.lines.Pass(h.key, h)
			}
			return true, err
		}
		granted := h.c.newHolding(next.Caller.ctx, next.Caller.want, a, r)
		if h.c.lines.HandOver(next, granted) {
			return true, nil
		}
		granted.end(ErrReleased)
		// Only now: a renewal may have been sent since the grant.
		f.hold, f.record, f.stored = granted.asHeld(), granted.currentRecord(), granted.lease.MayHaveStored()
		f.tried = &attempts.Sequence[attempt]{}
	}
}

// grantTo sends the hand-over until it is answered. It returns the attempt that was
// applied, and its record; neither if the key is free or somebody else's by now, as after
// an earlier release that was applied.
func (f *freeing) grantTo(limit context.Context, want *request) (attempt, Record, error) {
	h := f.h
	op := f.operation(func() (attempt, *protocol.Write) {
		f.stored = f.stored || len(f.tried.Versions()) > 0 && !want.changes.none()
		a := h.c.newAttempt(want.timing.Lease).under(h.session)
		a.handsOver = true
		return a, h.c.proto.HandOver(f.named(), h.c.grantOf(want, a))
	}, func(item protocol.Item, sent []attempt) (attempt, bool) {
		if item == nil {
			return attempt{}, false
		}
		r, err := h.c.decode(h.key, item)
		a, ok := attempts.Find(sent, r.Version)
		return a, ok && err == nil && !r.Released && a.lives(want.timing, h.c.now())
	})
	op.Within = want.grantWithin(h.session)
	r := f.tried.Run(f.op.ctx, limit, h.c.requests, op)
	switch r.Outcome {
	case attempts.Applied:
		record, err := h.c.decode(h.key, r.Item)
		return r.Attempt, record, err
	case attempts.Rejected:
		if f.isFreed(r.Item, append(f.tried.Unanswered(), r.Attempt), keepRecord) {
			return attempt{}, Record{}, nil
		}
		return attempt{}, Record{}, f.lost(r.Item)
	}
	f.stored = f.stored || r.Outcome != attempts.Refused && !want.changes.none()
	return attempt{}, Record{}, h.c.notDone("release", h.key, r)
}
