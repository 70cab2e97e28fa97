package leasehold

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// freeing is the course of all efforts to free a key, one at a time: the grant to
// be freed, which changes with every hand-over, and what has been sent for it.
type freeing struct {
	h      *holding
	op     *releasing    // the effort
	hold   protocol.Hold // without what has been sent for it
	record Record        // as of the last write known to have been applied
	stored bool          // one of unknown effect may have stored something since
	first  bool          // the first write was sent before the lease had run out
	tried  *attempts.Sequence[attempt]
	left   bool // an effort has failed: whoever wants the key may have taken it
	sent   int  // since the last report
	pause  time.Duration
	later  *time.Timer    // of an effort under a session that failed, and is repeated after the pause
	until  decide.Instant // when this effort is of no use: the lease has freed the key
}

// free hands the key over or releases it. A lock that was not trusted any more
// gets one conditional release: its record may still be there. Commits under
// way are waited for.
func (h *holding) free(op *releasing, e ending, trusted bool) error {
	_, leave := takeTurns(op.limit, []*holding{h})
	defer leave()
	return h.freeNow(op, e, trusted)
}

// freeNow is free for one whose turn it is.
func (h *holding) freeNow(op *releasing, e ending, trusted bool) error {
	started := h.c.now()
	f := h.freeingBy(op, started, trusted)

	// What was resumed is renewed by itself, and no waiter of this client may
	// take it over like that if its locks share a session.
	alike := (h.session != nil) == (h.c.sharing != nil)
	if trusted && f.first && alike && e.policy == keepRecord && e.changes.none() {
		if settled, err := f.handOver(op.limit); settled {
			h.reportRelease(started, f.spent(), err)
			return err
		}
	}
	err := f.release(op.limit, e)
	f.settled(started, e, err)
	return err
}

// freeingBy returns what there is to be freed, for an effort that starts now. A
// lease that has run out before anything was sent that might have landed, while
// the lock was held on to through an outage or a commit was waited for, vouches
// for nothing.
func (h *holding) freeingBy(op *releasing, started decide.Instant, trusted bool) *freeing {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.freeing == nil {
		h.freeing = &freeing{h: h, hold: h.asHeld(), record: h.currentRecord(), stored: h.lease.MayHaveStored(), first: trusted, tried: &attempts.Sequence[attempt]{}}
	}
	f := h.freeing
	f.op = op
	f.first = f.first && (f.tried.Silent() || !started.Past(h.lease.TrustedUntil()))
	f.until = started.Add(h.lease.Duration())
	return f
}

// settled ends an effort that has sent its releases: the next in line may seek
// the key.
func (f *freeing) settled(started decide.Instant, e ending, err error) {
	f.failed(e, err)
	f.h.reportRelease(started, f.spent(), err)
	f.h.c.lines.Pass(f.h.key, f.h)
}

// failed takes care of what an effort that failed may have left. Nobody believes
// in it, and it may be taken over at once. Under a session, whose renewals keep
// it held, the effort is repeated for as long as it is renewed: no lease frees
// the key before. The pauses double, since what was refused will mostly be
// refused again.
func (f *freeing) failed(e ending, err error) {
	h := f.h
	if err == nil || errors.Is(err, ErrLost) {
		return
	}
	f.left = true
	h.c.unsettled.Add(h.key, f.named().Versions, h.c.now().Mono)
	if h.session == nil {
		return
	}
	if f.later != nil {
		f.later.Stop()
	}
	f.pause = min(max(2*f.pause, h.c.timing.Lease), touchEvery)
	f.later = time.AfterFunc(f.pause, func() {
		if h.session.ended() == nil && h.c.enter() {
			defer h.c.leave()
			_ = h.release(endedContext(), e) // reported as an event
		}
	})
}

func (h *holding) reportRelease(started decide.Instant, requests int, err error) {
	if err != nil {
		way := "the lease frees the key"
		if h.session != nil && !errors.Is(err, ErrLost) {
			way = "it is repeated while the shared lease is renewed"
		}
		h.c.log.LogAttrs(h.ctx, slog.LevelWarn, "leasehold: release failed: "+way,
			slog.String("key", h.key.String()), slog.Int64("token", h.token), slog.Any("err", err))
	}
	h.c.emit(h.ctx, Event{Kind: EventReleased, Key: h.key, Token: h.token, Took: h.c.now().Mono - started.Mono,
		Held: h.heldUntil(started), Requests: requests, Err: err})
}

// spent returns the number of requests for a report, each for one.
func (f *freeing) spent() int {
	n := f.sent
	f.sent = 0
	return n
}

// heldUntil is how long the lock was held if it was given up at end: told once,
// so that times can be summed up. A release that is repeated adds nothing to
// the first, one of a lost lock nothing to the loss.
func (h *holding) heldUntil(end decide.Instant) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.told || errors.Is(h.lease.Cause(), ErrLost) {
		return 0
	}
	h.told = true
	return end.Mono - h.granted.Mono
}

// next spells the next attempt to release.
func (f *freeing) next(e ending) (attempt, *protocol.Write) {
	a := f.h.c.newAttempt(f.h.want.timing.Lease)
	return a, f.releaseOf(a, e)
}

// named is the grant to be freed as the record may show it by now: by an attempt
// without an answer, too, which may have handed it over.
func (f *freeing) named() protocol.Hold {
	hold := f.hold
	tried := f.tried.Unanswered()
	hold.Versions = append(slices.Clip(hold.Versions), attempts.Versions(tried)...)
	for _, a := range tried {
		if a.handsOver {
			hold.Grants, hold.Token = append(slices.Clip(hold.Grants), a.version), 0
		}
	}
	return hold
}

// operation is what is common to the writes of an effort.
func (f *freeing) operation(next func() (attempt, *protocol.Write), shows func(protocol.Item, []attempt) (attempt, bool)) attempts.Operation[attempt] {
	began := f.sent
	return attempts.Operation[attempt]{
		Key: protocol.Key(f.h.key), Shows: shows, Throttled: f.h.c.throttled(f.h.ctx, f.h.key, f.h.token),
		Next: func() (attempt, *protocol.Write) {
			f.sent++
			return next()
		},
		Turn: func() (func(), error) {
			if f.sent > began && f.h.c.now().Past(f.until) {
				return nil, errOfNoUse
			}
			leave, ok := f.op.places.Take(f.op.limit)
			if !ok {
				return nil, context.Cause(f.op.limit)
			}
			return leave, nil
		},
	}
}

// release sends the release until it is answered; of a lost lock once.
func (f *freeing) release(limit context.Context, e ending) error {
	h := f.h
	versions, reads, err := h.narrow(f.op.ctx, limit, f.hold.Versions, f.tried, f.until)
	f.sent += reads
	if err != nil {
		return h.unknownRelease(err)
	}
	f.hold.Versions = versions
	op := f.operation(func() (attempt, *protocol.Write) { return f.next(e) },
		func(item protocol.Item, sent []attempt) (attempt, bool) {
			return sent[len(sent)-1], f.isFreed(item, sent, e.policy)
		})
	var r attempts.Result[attempt]
	if f.first {
		r = f.tried.Run(f.op.ctx, limit, h.c.requests, op)
	} else {
		r = f.tried.Try(f.op.ctx, h.c.requests, op)
	}
	switch r.Outcome {
	case attempts.Applied:
		return nil
	case attempts.Rejected:
		return f.lost(r.Item)
	}
	return h.c.notDone("release", h.key, r)
}

// errOfNoUse is why a release is not repeated any more.
var errOfNoUse = errors.New("the lease has freed the key by now")

// releaseOf spells the release of a grant by attempt a.
func (f *freeing) releaseOf(a attempt, e ending) *protocol.Write {
	p := f.h.proto
	if e.policy != keepRecord {
		return p.Delete(f.named())
	}
	return p.Release(f.named(), protocol.Release{
		Version: a.version, Now: time.Now(), Changes: protocol.Changes(e.changes),
		Expires:      f.h.c.expires(f.stored || e.changes.leave(f.record)),
		ReadersFirst: f.h.readersFirst(),
	})
}

// isFreed reports whether a record that does not show our grant means that an
// attempt has freed it.
func (f *freeing) isFreed(item protocol.Item, sent []attempt, p policy) bool {
	// Nobody else could be granted the key while the first write was under
	// way, unless that write was applied.
	silent := f.tried.Silent()
	applied := silent && f.first && (f.h.session == nil || f.h.session.ended() == nil)
	if item == nil {
		return applied || silent && p == deleteRecord
	}
	r, err := f.h.decode(item)
	if err != nil {
		return applied
	}
	if _, ours := attempts.Find(sent, r.Version); ours && r.Released {
		return true
	}
	// Else, if it was left to whoever wants it while it was trusted, another has
	// it by right.
	return !slices.Contains(f.named().Grants, r.Grant) && (applied || f.first && f.left && (!r.Released || r.Grant != ""))
}

// lost says what a record that does not show our grant means otherwise.
func (f *freeing) lost(item protocol.Item) error {
	lost := &LostError{Table: f.h.c.cfg.Table, Key: f.h.key, Token: f.h.token, Reason: LostBroken, At: time.Now().Round(0)}
	r, err := f.h.decode(item)
	if item == nil || err != nil {
		return lost
	}
	lost.By = &r
	if !r.Released || r.Grant != "" && !slices.Contains(f.named().Grants, r.Grant) { // as ownRow.gone has it
		lost.Reason = LostReplaced
	}
	return lost
}
