package leasehold

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// freeing is the course of all efforts to free a key, one at a time: the grant to
// be freed, which changes with every hand-over, and what has been sent for it.
type freeing struct {
	h       *holding
	op      *releasing // the effort
	hold    protocol.Hold
	record  Record // as of the last write known to have landed
	stored  bool   // one of unknown effect may have stored something since
	first   bool   // the first write was sent before the lease had run out
	tried   []attempt
	unknown bool // a write has had no answer
	left    bool // an effort has failed: whoever wants the key may have taken it
	sent    int  // since the last report
	pause   time.Duration
	later   *time.Timer    // of an effort under a session that failed, and is repeated after the pause
	until   decide.Instant // when this effort is of no use: the lease has freed the key
}

// free hands the key over or releases it. A lock that was not trusted any more
// gets one conditional release: its record may still be there. Commits under
// way are waited for.
func (h *holding) free(op *releasing, e ending, trusted bool) error {
	leave, _ := h.afterCommits(op.limit)
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
		h.freeing = &freeing{h: h, hold: h.asHeld(), record: h.record, stored: h.stored, first: trusted}
	}
	f := h.freeing
	f.op = op
	f.first = f.first && (f.unknown || !started.Past(h.trustEnds()))
	f.until = started.Add(h.timing.lease)
	return f
}

// settled ends an effort that has sent its releases: the next in line may seek
// the key.
func (f *freeing) settled(started decide.Instant, e ending, err error) {
	f.failed(e, err)
	f.h.reportRelease(started, f.spent(), err)
	f.h.c.lines.pass(f.h.key, f.h)
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
	h.c.unsettled.Add(h.key, f.hold.Versions, h.c.now().Mono)
	if h.session == nil {
		return
	}
	if f.later != nil {
		f.later.Stop()
	}
	f.pause = min(max(2*f.pause, h.c.timing.lease), touchEvery)
	f.later = time.AfterFunc(f.pause, func() {
		if h.session.row.ended() == nil && h.c.enter() {
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
	if h.heads == nil {
		h.c.emit(h.ctx, Event{Kind: EventReleased, Key: h.key, Token: h.token, Took: h.c.now().Mono - started.Mono,
			Held: h.heldUntil(started), Requests: requests, Err: err})
	}
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
	if h.told || errors.Is(h.cause, ErrLost) {
		return 0
	}
	h.told = true
	return end.Mono - h.granted.Mono
}

// next spells the next attempt to release.
func (f *freeing) next(e ending) (attempt, *protocol.Write) {
	a := f.h.c.newAttempt(f.h.want.timing.lease)
	return a, f.releaseOf(a, e)
}

// release sends the release until it is answered.
func (f *freeing) release(limit context.Context, e ending) error {
	h := f.h
	if err := f.narrow(limit); err != nil {
		return err
	}
	for n := 0; ; n++ {
		a, w := f.next(e)
		ans := f.write(w, attemptLimit)
		switch {
		case ans.Effect == decide.Applied:
			return nil
		case ans.Cause == decide.ConditionFailed:
			return f.settle(ans, e.policy)
		case ans.Effect == decide.Unknown:
			f.unknown = true
			f.note(a)
		case ans.Cause == decide.Refused && !f.unknown:
			return opError("release", h.c.cfg.Table, h.key, ans.err)
		}
		if !f.first || !f.again(limit, n) { // one is what a lost lock gets
			return h.unknownRelease(ans.err)
		}
	}
}

// write sends one request of the effort.
func (f *freeing) write(w *protocol.Write, within time.Duration) answer {
	leave, ok := f.op.turn.take(f.op.limit)
	if !ok {
		return answer{Reply: decide.Reply{Effect: decide.NotApplied, Cause: decide.Unreachable}, err: context.Cause(f.op.limit)}
	}
	defer leave()
	f.sent++
	return f.h.c.writeUntil(f.op.ctx, w, within)
}

// again pauses before a request is repeated; false: there is no use in it, or no
// time left.
func (f *freeing) again(limit context.Context, n int) bool {
	if len(f.hold.Versions) >= mostNamed {
		return false
	}
	pause(limit.Done(), f.h.c.backoff(n, time.Second))
	return limit.Err() == nil && !f.h.c.now().Past(f.until)
}

// narrow reads the record if the efforts so far have left more versions without
// an answer than the conditions of another can name.
func (f *freeing) narrow(limit context.Context) error {
	for n := 0; len(f.hold.Versions) > manyTried; n++ {
		ans := f.h.c.read(f.op.ctx, f.h.key)
		f.sent++
		if ans.err != nil {
			if ans.Cause == decide.Refused || !f.again(limit, n) {
				return f.h.unknownRelease(ans.err)
			}
			continue
		}
		var shown Record
		if r, err := f.h.decode(ans.item); ans.item != nil && err == nil {
			shown = r
		}
		f.hold.Versions = decide.StillToName(f.hold.Versions, shown.Version, manyTried)
		f.hold.Grants = slices.DeleteFunc(f.hold.Grants, func(grant string) bool {
			return grant != shown.Grant && grant != f.hold.Grants[0] && !slices.Contains(f.hold.Versions, grant)
		})
	}
	return nil
}

// releaseOf spells the release of a grant by attempt a.
func (f *freeing) releaseOf(a attempt, e ending) *protocol.Write {
	p := f.h.proto
	if e.policy != keepRecord {
		return p.Delete(f.hold)
	}
	return p.Release(f.hold, protocol.Release{
		Version: a.version, Now: time.Now(), Changes: protocol.Changes(e.changes),
		Expires:      f.h.c.expires(f.stored || e.changes.leave(f.record)),
		ReadersFirst: f.h.readersFirst(),
	})
}

// note remembers an attempt without an answer: the next ones expect it.
func (f *freeing) note(a attempt) {
	f.tried = append(f.tried, a)
	f.hold.Versions = append(f.hold.Versions, a.version)
}

// settle says what it means that the record does not show our grant.
func (f *freeing) settle(ans answer, p policy) error {
	h := f.h
	item, ok := h.c.shown(h.ctx, h.key, ans)
	if !ok {
		return h.unknownRelease(ans.err)
	}
	// Nobody else could be granted the key while the first write was under
	// way, unless that write landed.
	landed := f.unknown && f.first && (h.session == nil || h.session.row.ended() == nil)
	if item == nil {
		if landed || f.unknown && p == deleteRecord {
			return nil
		}
		return f.lost(LostBroken, nil)
	}
	r, err := h.decode(item)
	switch {
	case err != nil && landed:
		return nil
	case err != nil:
		return f.lost(LostBroken, nil)
	case r.Released && slices.Contains(versionsOf(f.tried), r.Version), landed && !slices.Contains(f.hold.Grants, r.Grant):
		return nil
	case r.Released && (r.Grant == "" || slices.Contains(f.hold.Grants, r.Grant)): // see holding.settle
		return f.lost(LostBroken, &r)
	case f.first && f.left && !slices.Contains(f.hold.Grants, r.Grant):
		return nil // had by right: the key was left to whoever wants it, while it was trusted
	}
	return f.lost(LostReplaced, &r)
}

func (f *freeing) lost(reason LostReason, by *Record) error {
	return &LostError{Table: f.h.c.cfg.Table, Key: f.h.key, Token: f.h.token, Reason: reason, By: by, At: time.Now().Round(0)}
}
