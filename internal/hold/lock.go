package hold

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/acquire"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/ctxmutex"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Lock is one grant of one key, while this client holds it. Several handles may share a
// Lock.
type Lock struct {
	row
	want    *acquire.Want
	attempt acquire.GrantAttempt // the write that granted the key, or resumed the grant
	session *session             // attempt.Session: the session that is renewed in place of this grant's own lease; nil if there is none
	nth     int                  // number of this grant in the order of acquisition; guarded by the mu of Holds
	first   *Handle              // the handle of the call that acquired the lock, with the values of that call's context
	resumed bool                 // the lock was made by Resume: the grant was detached before, in this process or another

	unclaimed bool // the lock was resumed, but its caller has not received it yet; guarded by the mu of Holds

	committing ctxmutex.Mutex // locked during each commit and release, so that only one of them runs at a time
	working    core.Calls     // the functions passed to Do that run under the lock; Close waits for them

	mu      sync.Mutex // guards the fields below; never held across I/O
	handles []*Handle
	onAsked []func()      // functions to call when another client asks the holder to step down
	lasted  time.Duration // how long the lock was trusted; 0 until trust ends, and set to 0 again once an event has reported it
	givenUp bool          // a release has ended the trust; false after a loss, after Detach, and after a Close that released nothing
	release *release      // the release of the lock that has begun most recently
	freeing *freeing      // state that the releases of the lock share; one of them uses it at a time
}

// Hold makes a Lock from the grant g. The parameter "first" is the handle of the call that acquired
// the key.
func (c *Holds) Hold(ctx context.Context, want *acquire.Want, g acquire.Grant, first *Handle) *Lock {
	c.keys.InDoubt.Settle(want.Key, g.Record.Version)
	h := &Lock{
		row: c.newRow(ctx, want.Key, c.Proto, g.Record), want: want, attempt: g.GrantAttempt,
		first: first, resumed: g.Resumed, unclaimed: g.Resumed, committing: ctxmutex.New(),
	}
	h.session, _ = g.Session.(*session)
	terms := lease.Terms{Timing: want.Timing, Manual: want.Manual && !g.AwaitsRest, Handed: g.Handed, Key: want.Key, Values: h.ctx, Writes: h.committing}
	if h.session != nil {
		terms.Parent = h.session.lease
	}
	h.lease = c.leases.New(terms, g.Attempt, g.Record, h)
	h.add(h.ctx, first)
	h.lease.Start()
	c.keep(h)
	if h.session != nil {
		h.session.join(h)
	}
	return h
}

// Key returns the key that was acquired.
func (h *Lock) Key() protocol.Key { return h.key }

// Token returns the fencing token of the grant.
func (h *Lock) Token() int64 { return h.token }

// Want returns the request for which the key was acquired.
func (h *Lock) Want() *acquire.Want { return h.want }

// UnderSession reports whether a session is renewed in place of the lock's own lease.
func (h *Lock) UnderSession() bool { return h.session != nil }

// First returns the handle of the call that acquired the key.
func (h *Lock) First() *Handle { return h.first }

// IsResumed reports whether Resume made the lock from a grant that was detached, in this
// process or another.
func (h *Lock) IsResumed() bool { return h.resumed }

// Dead returns the record of the dead holder that the key was taken over from, or nil if the
// key was free.
func (h *Lock) Dead() *protocol.Record { return h.attempt.Dead }

// Record returns the record after the last write that is known to have been applied.
func (h *Lock) Record() protocol.Record { return h.lease.Record() }

// Age returns the time since the grant. It excludes time for which the machine was
// suspended.
func (h *Lock) Age() time.Duration { return h.c.Now().Mono - h.attempt.Sent.Mono }

// IsOver reports whether the trust has ended, without reading the clock.
func (h *Lock) IsOver() bool { return h.lease.IsOver() }

// Handles returns the handles that share the grant.
func (h *Lock) Handles() []*Handle {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.handles)
}

// Ended returns the error with which the trust has ended, or nil while the lock is trusted.
func (h *Lock) Ended() error { return h.naming(h.lease.Ended()) }

// end ends the trust permanently, with cause as its error. It returns false if an earlier
// call had ended the trust.
func (h *Lock) end(cause error) bool { return h.endWith(cause, nil) }

// endWith ends the trust, as the method end does. If this call ends the trust, and r is not nil,
// endWith also records r as the lock's release.
func (h *Lock) endWith(cause error, r *release) bool {
	h.mu.Lock()
	ended := h.lease.End(cause)
	if ended {
		h.lasted = h.Age()
		if r != nil {
			h.release, h.givenUp = r, true
		}
	}
	h.mu.Unlock()
	if !ended {
		return false
	}
	h.cancelHandles(cause)
	h.c.drop(h, r != nil)
	h.c.failing.forget(&h.row)
	return true
}

// cancelHandles ends the contexts of all handles with the given cause.
func (h *Lock) cancelHandles(cause error) {
	for _, l := range h.Handles() {
		l.ctx.cancel(core.Public(cause))
	}
}

// Lost ends the trust after the lease was lost, and reports the loss.
func (h *Lock) Lost(why lease.Loss) {
	switch err := h.lossOf(why); {
	case !h.end(err):
	case errors.Is(err, core.ErrLost):
		reportLosses([]*Lock{h})
	default:
		h.passTurn()
	}
}

// reportLosses logs the losses of locks that have ended, and emits their events. It does this last,
// because the log and OnEvent may be slow. First it lets waiting goroutines acquire the keys, and
// calls the functions of the expiry warnings.
func reportLosses(lost []*Lock) {
	for _, h := range lost {
		h.passTurn()
		h.lease.WarnOfLoss()
	}
	for _, h := range lost {
		err := h.lease.Cause()
		why, _ := core.LossOf(err)
		h.c.Log.LogAttrs(h.ctx, slog.LevelWarn, "leasehold: lock lost", slog.String("key", h.key.String()), slog.String("table", h.c.Table),
			slog.Int64("token", h.token), slog.String("reason", string(why.Reason)), slog.Any("err", why.Err))
		h.c.Report(h.ctx, core.Event{Kind: core.Lost, Key: h.key, Token: h.token, Held: h.held(), Err: core.Public(err)})
	}
}

// held returns how long the lock was trusted, for the field Held of an event. It returns 0 if an
// earlier event has contained this time, so that the sum over events is right. For example, a lost
// lock may emit another event when released.
func (h *Lock) held() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	lasted := h.lasted
	h.lasted = 0
	return lasted
}

// passTurn lets the next goroutine in the local queue acquire the key.
func (h *Lock) passTurn() { h.c.keys.Local.Pass(h.key, h) }

// naming returns err as a public error, with the key of the lock in its text.
func (h *Lock) naming(err error) error { return h.c.Naming(h.key, core.Public(err)) }
