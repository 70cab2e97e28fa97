package leasehold

import (
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// handOver hands the key to the next in the local line, in one write that ends this
// grant and begins theirs. It ends the release, unless there is none: then the grant in
// f.hold must still be released. The next may have left while the write was in flight.
// Then the new grant has no owner here, and is handed on.
func (f *releaser) handOver() (ended bool) {
	h := f.h
	for {
		next := h.c.lines.Successor(h.key, h)
		if next == nil {
			return false
		}
		a, record, err := f.grantTo(next.Caller.want)
		if err != nil || a.version == "" {
			f.leaveToOthers(err)
			if !h.c.lines.LetSeek(next) {
				h.c.lines.Pass(h.key, h)
			}
			f.report(err)
			f.r.end(err)
			return true
		}
		granted := h.c.newHolding(next.Caller.ctx, next.Caller.want, a, record)
		if h.c.lines.HandOver(next, granted) {
			f.report(nil)
			f.r.end(nil)
			return true
		}
		granted.end(ErrReleased)
		// Only now: a renewal may have been sent since the grant.
		f.hold, f.record, f.stored = granted.asHeld(), granted.currentRecord(), granted.lease.MayHaveStored()
		h.mu.Lock()
		f.tried = &attempts.Sequence[attempt]{}
		h.mu.Unlock()
	}
}

// grantTo sends the hand-over until it is answered. It returns the attempt that was
// applied, and its record; neither if the key is free or somebody else's by now, as after
// an earlier release that was applied.
func (f *releaser) grantTo(want *request) (attempt, Record, error) {
	h := f.h
	r := f.run(attempts.Operation[attempt]{
		Within: want.grantWithin(h.session),
		Next: func() (attempt, *protocol.Write) {
			f.stored = f.stored || len(f.tried.Versions()) > 0 && !want.changes.none()
			a := h.c.newAttempt(want.timing.Lease).under(h.session)
			a.handsOver = true
			return a, h.c.proto.HandOver(f.named(), h.c.grantOf(want, a))
		},
		Shows: func(item protocol.Item, sent []attempt) (attempt, bool) {
			if item == nil {
				return attempt{}, false
			}
			record, err := h.c.decode(h.key, item)
			a, ok := attempts.Find(sent, record.Version)
			return a, ok && err == nil && !record.Released && a.lives(want.timing, h.c.now())
		},
	})
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
	f.stored = f.stored || r.Outcome == attempts.Unanswered && !want.changes.none()
	return attempt{}, Record{}, h.c.notDone(f.r.limit, "release", h.key, r, f.tried)
}
