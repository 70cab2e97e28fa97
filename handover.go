package leasehold

import (
	"context"
	"slices"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// handOver passes the key to the next in the local line in one write, which
// ends this grant and begins theirs. It reports whether that settled the
// matter; if not, the grant in f.hold is still to be released. The next may
// have left while the write was under way: then the new grant is nobody's and
// is passed on.
func (f *freeing) handOver(limit context.Context) (settled bool, err error) {
	h := f.h
	for {
		t := h.c.lines.heir(h, h.age())
		if t == nil {
			return false, nil
		}
		a, r, err := f.grantTo(limit, t.want)
		if err != nil || a.version == "" {
			f.failed(ending{policy: keepRecord}, err)
			if !h.c.lines.deliver(t, turn{}) {
				h.c.lines.pass(h.key, h)
			}
			return true, err
		}
		next := h.c.newHolding(t.ctx, t.want, a, r)
		if h.c.lines.deliver(t, turn{granted: next}) {
			return true, nil
		}
		next.end(ErrReleased)
		f.hold = protocol.Hold{Key: protocol.Key(h.key), Owner: r.Owner, Grants: []string{r.Grant}, Token: r.Token, Versions: []string{r.Version}}
		f.record, f.stored = r, false
		f.tried, f.unknown = nil, false
	}
}

// grantTo sends the hand-over until it is answered, and returns the attempt
// that landed and the record it made; neither if somebody else has the key
// by now, as after a release that worked.
func (f *freeing) grantTo(limit context.Context, want *request) (attempt, Record, error) {
	h := f.h
	for n := 0; ; n++ {
		a := h.c.newAttempt(want.timing.lease).under(h.session)
		ans := f.write(h.c.proto.HandOver(f.hold, h.c.grantOf(want, a)), a.grantWithin(want))
		switch {
		case ans.Effect == decide.Applied:
			r, err := h.c.decode(h.key, ans.item)
			return a, r, err
		case ans.Cause == decide.ConditionFailed:
			return f.landed(want, a, ans)
		case ans.Effect == decide.Unknown:
			f.unknown = true
			f.stored = f.stored || !want.changes.none()
			f.note(a)
			f.hold.Grants, f.hold.Token = append(f.hold.Grants, a.version), 0
		case ans.Cause == decide.Refused && !f.unknown:
			return attempt{}, Record{}, opError("release", h.c.cfg.Table, h.key, ans.err)
		}
		if !f.again(limit, n) {
			return attempt{}, Record{}, h.unknownRelease(ans.err)
		}
	}
}

// landed tells a hand-over of ours that was delivered twice from a lost lock.
func (f *freeing) landed(want *request, last attempt, ans answer) (attempt, Record, error) {
	h := f.h
	if item, ok := h.c.shown(h.ctx, h.key, ans); ok && item != nil {
		if r, err := h.c.decode(h.key, item); err == nil && !r.Released {
			for _, a := range append(slices.Clone(f.tried), last) {
				if a.version == r.Version && a.lives(want.timing, h.c.now()) {
					return a, r, nil
				}
			}
		}
	}
	return attempt{}, Record{}, f.settle(ans, keepRecord)
}
