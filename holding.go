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
	"github.com/leasehold-go/leasehold/internal/renewals"
)

// holding is one grant while this client has it: what is believed of it and
// until when. Handles (Lock) share it. A holding is trusted, then ended for
// good: lost, released or detached.
type holding struct {
	c       *Client
	key     Key
	owner   string
	grant   string
	token   int64
	ctx     context.Context // the caller's values, without its end
	want    *request
	proto   protocol.Protocol
	session *session // whose lease is renewed in this grant's place; nil: none
	heads   *session // whose row this is; nil: it is a lock
	granted decide.Instant
	took    *Record // the dead holder's record, if it was taken over
	first   *Lock   // the handle of the call that was granted

	over    chan struct{} // closed when trust has ended
	writing chan struct{} // one place: renewals exclude each other

	committing chan struct{} // one place: commits exclude each other and the release

	mu        sync.Mutex // guards what follows; never held across I/O
	cause     error      // why trust ended; nil while trusted
	timing    lease.Timing
	manual    bool            // nothing renews it but its callers
	until     decide.Instant  // under a session there is no end but the session's
	confirmed string          // the version of the last write known to have landed
	tried     []attempt       // later writes without an answer, oldest first
	begun     bool            // a renewal has been tried since the last that landed
	lastErr   error           // of the last renewal
	outage    *decide.Instant // the last reply, if it said that DynamoDB is out
	record    Record
	stored    bool // an attempt without an answer may have stored something
	handles   []*Lock
	working   int           // functions in Do
	quiet     chan struct{} // closed when there are none; Close waits for it
	releasing *releasing    // the last effort to free the key
	freeing   *freeing      // what all efforts have sent; theirs, one at a time
	told      bool          // an event of a release has said how long it was held
	expiry    *time.Timer
	renewal   *renewals.Lease // nil: manual
	warnings  []*armed
}

// newHolding begins to hold what attempt a was granted, as item shows it, and
// makes the first handle.
func (c *Client) newHolding(ctx context.Context, want *request, a attempt, r Record) *holding {
	c.unsettled.Settle(want.key, r.Version)
	h := &holding{
		c: c, key: want.key, owner: r.Owner, grant: r.Grant, token: r.Token, ctx: context.WithoutCancel(ctx), want: want,
		granted: a.sent, timing: want.timing, manual: want.manual,
		confirmed: r.Version, record: r,
		over: make(chan struct{}), writing: make(chan struct{}, 1),
		committing: make(chan struct{}, 1),
		proto:      want.protoOf(c, r.Grant), session: a.session, heads: want.heads,
	}
	if h.heads != nil {
		h.proto = c.sharing.proto.Session()
	}
	h.until = h.trustedFrom(h.timing, a)
	h.first = h.newHandle(ctx)
	now := c.now()
	h.mu.Lock()
	h.expiry = time.AfterFunc(max(now.Remaining(h.until), 0), h.look)
	h.armWarnings(h.first, want.warnings)
	if !want.manual {
		h.renewal = c.renewals.Add(h.timing.Times(), now.Remaining(h.until), h.renewDue)
	}
	h.mu.Unlock()
	c.keep(h)
	if h.session != nil {
		h.session.join(h)
	}
	return h
}

// trustedFrom is the instant up to which the record supports the trust in the
// grant once attempt a has landed. Under a session no instant is too late: the
// lease in such a record is for readers that know nothing of sessions, and
// whether it was renewed is no matter of trust.
func (h *holding) trustedFrom(t lease.Timing, a attempt) decide.Instant {
	if h.session != nil {
		return decide.Never
	}
	return t.TrustedFrom(a.sent)
}

// trustEnds is the instant at which trust ends if nothing is renewed: that of
// the session, if it has one. h.mu is held.
func (h *holding) trustEnds() decide.Instant {
	if h.session == nil {
		return h.until
	}
	row := h.session.row
	row.mu.Lock() // a session's row has no session: never the other way round
	defer row.mu.Unlock()
	return row.until
}

// remaining is the trust that is left at now. h.mu is held.
func (h *holding) remaining(now decide.Instant) time.Duration { return now.Remaining(h.trustEnds()) }

// decode reads an item as the record of this grant.
func (h *holding) decode(item protocol.Item) (Record, error) {
	r, err := h.proto.Decode(item)
	if err != nil {
		return Record{}, h.c.recordError(h.key, item, err)
	}
	return recordOf(r), nil
}

func (h *holding) newHandle(ctx context.Context) *Lock {
	l := &Lock{h: h}
	l.ctx, l.cancel = newLockContext(ctx, h)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.handles = append(h.handles, l)
	return l
}

// look ends the trust if its time has come. Contexts call it whenever they are
// asked, the expiry timer when nobody asks.
func (h *holding) look() {
	if h.session != nil {
		h.session.row.look()
		if h.session.row.isOver() && !h.isOver() {
			h.session.loseOne(h) // whoever ended the session may not have come to this one yet
		}
		return
	}
	h.mu.Lock()
	if h.cause != nil {
		h.mu.Unlock()
		return
	}
	now := h.c.now()
	if remaining := now.Remaining(h.until); remaining > 0 {
		// The clock that runs on in suspend may have come nearer to the end.
		h.expiry.Reset(remaining)
		h.mu.Unlock()
		return
	}
	if h.throughOutage(now) {
		h.expiry.Reset(h.timing.Every)
		h.mu.Unlock()
		return
	}
	reason := LostExpired
	if !h.manual && !h.begun && !h.c.renewals.Waited(h.renewal) {
		// Trust leaves room for several renewals. That none has even come to
		// its turn means that nothing ran here.
		reason = LostPaused
	}
	err := h.lastErr
	h.mu.Unlock()
	h.lose(reason, nil, err)
}

// throughOutage reports whether the lock is held on to though its lease has run
// out, because DynamoDB answers that it cannot: nobody could be granted it, if
// that is what everybody hears. An answer counts for a lease. h.mu is held.
func (h *holding) throughOutage(now decide.Instant) bool {
	return h.c.cfg.HoldThroughOutage && h.outage != nil && !now.Past(h.outage.Add(h.timing.Lease))
}

// heard enters what the last answer to a renewal says of DynamoDB. h.mu is held.
func (h *holding) heard(ans answer) {
	h.outage = nil
	if now := h.c.now(); ans.Outage {
		h.outage = &now
	}
}

// end ends the trust for good, once, and reports whether this call did.
func (h *holding) end(cause error) bool { return h.endWith(cause, nil) }

// endWith is end, and makes op the effort to free the key.
func (h *holding) endWith(cause error, op *releasing) bool {
	h.mu.Lock()
	if h.cause != nil {
		h.mu.Unlock()
		return false
	}
	h.cause = cause
	if op != nil {
		h.releasing = op
	}
	close(h.over)
	h.expiry.Stop()
	if h.renewal != nil {
		h.c.renewals.Remove(h.renewal)
	}
	for _, w := range h.warnings {
		w.timer.Stop()
	}
	handles := slices.Clone(h.handles)
	h.mu.Unlock()

	for _, l := range handles {
		l.cancel(cause)
	}
	h.c.drop(h)
	h.c.failing.forget(h)
	if h.session != nil {
		h.session.leave(h)
	}
	return true
}

// lose ends the trust because the lock is not ours any more, or may not be.
func (h *holding) lose(reason LostReason, by *Record, err error) {
	h.loseWith(h.lostError(reason, by, err))
}

// lostError says that the lock is lost since now, or since its trust ran out.
func (h *holding) lostError(reason LostReason, by *Record, err error) *LostError {
	return &LostError{Table: h.c.cfg.Table, Key: h.key, Token: h.token, Reason: reason, By: by, Err: err,
		At: time.Now().Add(min(h.c.now().Remaining(h.trustedUntil()), 0)).Round(0)}
}

func (h *holding) loseWith(lost *LostError) {
	if !h.end(lost) {
		return
	}
	if h.heads != nil {
		h.heads.lose()
		return
	}
	tellOf([]loss{newLoss(h, lost)})
}

// loss is a lock that has been lost, and how.
type loss struct {
	h    *holding
	err  *LostError
	held time.Duration
}

func newLoss(h *holding, err *LostError) loss { return loss{h, err, h.age()} }

// tellOf says which locks were lost, all of which have ended: whoever waits for
// one, or wants a warning, before the log and the listeners, which may be slow.
func tellOf(losses []loss) {
	for _, l := range losses {
		l.h.c.lines.Pass(l.h.key, l.h)
		l.h.warnAll()
	}
	for _, l := range losses {
		h := l.h
		h.c.log.LogAttrs(h.ctx, slog.LevelWarn, "leasehold: lock lost", slog.String("key", h.key.String()),
			slog.Int64("token", h.token), slog.String("reason", string(l.err.Reason)), slog.Any("err", l.err.Err))
		h.c.emit(h.ctx, Event{Kind: EventLost, Key: h.key, Token: h.token, Held: l.held, Err: l.err})
	}
}

// ended returns why trust ended, nil while it lasts.
func (h *holding) ended() error {
	h.look()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cause
}

// trustedUntil is when trust ends, or would have.
func (h *holding) trustedUntil() decide.Instant {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.trustEnds()
}

// isOver reports whether trust has been ended, without a look at the clock.
func (h *holding) isOver() bool {
	select {
	case <-h.over:
		return true
	default:
		return false
	}
}

// age is the time since the grant, by the clock that stands still in suspend.
func (h *holding) age() time.Duration { return h.c.now().Mono - h.granted.Mono }

func (h *holding) currentRecord() Record {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.record
}

// asHeld names the grant for a condition. h.mu is held.
func (h *holding) asHeld() protocol.Hold {
	return protocol.Hold{
		Key: protocol.Key(h.key), Owner: h.owner, Grants: []string{h.grant}, Token: h.token,
		Versions: append([]string{h.confirmed}, versionsOf(h.tried)...),
	}
}

// confirm enters a write of this holding that is known to have landed: trust
// now counts from the sending of that very attempt.
func (h *holding) confirm(a attempt, r Record) {
	now := h.c.now()
	h.confirmAt(now, a, r)
	if h.heads != nil {
		h.heads.renewed(now)
	}
}

func (h *holding) confirmAt(now decide.Instant, a attempt, r Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cause != nil {
		return
	}
	if now.Past(h.until) && !h.throughOutage(now) {
		return // an ended trust never revives; look will say so
	}
	h.timing = h.timing.Scaled(a.lease)
	h.until = h.trustedFrom(h.timing, a)
	h.confirmed, h.record = a.version, r
	// What was tried before it can no longer land: its condition names
	// versions that are gone.
	if i := slices.IndexFunc(h.tried, func(t attempt) bool { return t.version == a.version }); i >= 0 {
		h.tried = slices.Delete(h.tried, 0, i+1)
	}
	for _, t := range h.tried { // what was tried after it may land yet, with a shorter lease
		h.until = h.until.Earlier(h.trustedFrom(h.timing.Scaled(t.lease), t))
	}
	h.stored = h.stored && len(h.tried) > 0
	h.begun, h.lastErr, h.outage = false, nil, nil
	h.rearm(now)
	if h.renewal != nil {
		h.c.renewals.Renewed(h.renewal, h.timing.Times(), now.Mono-a.sent.Mono, now.Remaining(h.until))
	}
}

// rearm sets the timers by what is trusted now. h.mu is held, and trust lasts.
func (h *holding) rearm(now decide.Instant) {
	h.expiry.Reset(max(now.Remaining(h.until), 0))
	h.rearmWarnings(now)
}
