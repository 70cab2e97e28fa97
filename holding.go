package leasehold

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/seek"
)

// holding is a lock while this client has it. Handles (Lock) share it.
type holding struct {
	ownRow
	want    *request
	session *session // whose lease is renewed in this grant's place; nil: none
	granted decide.Instant
	took    *Record // the dead holder's record, if it was taken over
	first   *Lock   // the handle of the call that was granted

	committing chan struct{} // one place: commits exclude each other and the release

	mu           sync.Mutex // guards what follows; never held across I/O
	handles      []*Lock
	working      int           // functions in Do
	idle         chan struct{} // closed when there are none; Close waits for it
	release      *release      // the last one that has begun
	releaser     *releaser     // used by one release at a time
	heldReported bool          // an event of a release has said how long it was held
}

// newHolding begins to hold what was granted, and makes the first handle.
func (c *Client) newHolding(ctx context.Context, want *request, g seek.Grant) *holding {
	c.seek.Unsettled.Settle(want.Key, g.Record.Version)
	h := &holding{
		ownRow: c.newOwnRow(ctx, want.key(), want.Protocol(c.proto, g.Record.Grant), g.Record), want: want,
		granted: g.Sent, committing: make(chan struct{}, 1),
	}
	h.session, _ = g.Session.(*session)
	if g.Dead != nil {
		took := recordOf(*g.Dead)
		h.took = &took
	}
	terms := lease.Terms{
		Timing: want.Timing, Manual: want.Manual, Key: want.Key, Values: h.ctx, Writes: h.committing,
	}
	if h.session != nil {
		terms.Parent = h.session.lease
	}
	h.lease = c.leases.New(terms, g.Attempt.Attempt, g.Record, h)
	h.first = h.newHandle(ctx)
	h.first.warn(want.warnings)
	h.lease.Start()
	c.keep(h)
	if h.session != nil {
		h.session.join(h)
	}
	return h
}

func (h *holding) newHandle(ctx context.Context) *Lock {
	l := &Lock{h: h}
	l.ctx, l.cancel = newLockContext(ctx, h)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.handles = append(h.handles, l)
	return l
}

// dropHandle forgets a handle that has ended. h.mu is held.
func (h *holding) dropHandle(l *Lock) {
	h.handles = slices.DeleteFunc(h.handles, func(o *Lock) bool { return o == l })
}

// ended is what the trust has ended with, nil before it.
func (h *holding) ended() error { return h.naming(h.lease.Ended()) }

// end ends the trust for good, once, and reports whether this call did.
func (h *holding) end(cause error) bool { return h.endWith(cause, nil) }

// endWith is end, and makes r the release that has begun.
func (h *holding) endWith(cause error, r *release) bool {
	h.mu.Lock()
	if !h.lease.End(cause) {
		h.mu.Unlock()
		return false
	}
	if r != nil {
		h.release = r
	}
	handles := slices.Clone(h.handles)
	h.mu.Unlock()

	for _, l := range handles {
		l.cancel(cause)
	}
	h.c.drop(h)
	h.c.failing.forget(&h.ownRow)
	if h.session != nil {
		h.session.leave(h)
	}
	return true
}

// loseWith ends the trust because the lock is not ours any more, or may not be.
func (h *holding) loseWith(lost *LostError) {
	if h.end(lost) {
		tellOf([]loss{newLoss(h, lost)})
	}
}

// Lost ends the trust.
func (h *holding) Lost(loss lease.Loss) {
	err := h.endBy(loss)
	if lost, ok := err.(*LostError); ok { // never wrapped
		h.loseWith(lost)
	} else if h.end(err) {
		h.passTurn()
	}
}

// endBy says how a lock has ended whose lease was lost. If this client has given the
// session up, which it does when it closes, it has given up the lock too.
func (h *holding) endBy(loss lease.Loss) error {
	if loss.Reason != lease.WithParent {
		return h.lossBy(loss)
	}
	if session, ok := loss.Err.(*LostError); ok { // set by loseWith, never wrapped
		return h.lossWith(session)
	}
	return loss.Err
}

// lossWith is the loss of a lock whose session was lost.
func (h *holding) lossWith(session *LostError) *LostError {
	return h.lostError(session.Reason, nil, session.Err)
}

// outlived says how a lock that this client has given up would have ended by now; nil
// while it would still be trusted.
func (h *holding) outlived() error {
	if loss, lost := h.lease.Outlived(); lost {
		return h.endBy(loss)
	}
	return nil
}

// loss is a lock that has been lost, and how.
type loss struct {
	h    *holding
	err  *LostError
	held time.Duration
}

func newLoss(h *holding, err *LostError) loss { return loss{h, err, h.Age()} }

// tellOf reports locks that were lost; all of them have ended. Those who wait for one,
// or want a warning, come first: the log and the listeners may be slow.
func tellOf(losses []loss) {
	for _, l := range losses {
		l.h.passTurn()
		l.h.lease.WarnOfLoss()
	}
	for _, l := range losses {
		h := l.h
		h.c.log.LogAttrs(h.ctx, slog.LevelWarn, "leasehold: lock lost", slog.String("key", h.key.String()),
			slog.String("table", h.c.cfg.Table),
			slog.Int64("token", h.token), slog.String("reason", string(l.err.Reason)), slog.Any("err", l.err.Err))
		h.c.emit(h.ctx, Event{Kind: EventLost, Key: h.key, Token: h.token, Held: l.held, Err: l.err})
	}
}

// Age is the time since the grant, by the clock that stops while the machine is
// suspended.
func (h *holding) Age() time.Duration { return h.c.now().Mono - h.granted.Mono }

// passTurn lets the next in the local line seek the key.
func (h *holding) passTurn() { h.c.seek.Lines.Pass(protocol.Key(h.key), h) }
