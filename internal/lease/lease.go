package lease

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/ctxmutex"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/renewals"
)

// Leases is the state that all leases of one client share.
type Leases struct {
	*core.Env
	Scheduler     *renewals.Scheduler // sends renewals in the background, each when it is due
	ThroughOutage bool                // leases stay trusted past their expiry while DynamoDB answers that it is unavailable

	sending atomic.Int64
}

// Sending returns how many renewals are in flight.
func (c *Leases) Sending() int { return int(c.sending.Load()) }

// Terms are the settings of a new lease.
type Terms struct {
	Timing Timing
	Manual bool            // the lease is renewed only by calls of Renew
	Handed bool            // another client has handed the key over, so the lease begins with the shorter lease of a hand-over
	Parent *Lease          // lease of the session; the new lease is trusted only while Parent is trusted; nil if there is no session
	Key    protocol.Key    // key of the record
	Values context.Context // context values for background renewals
	Writes ctxmutex.Mutex  // locked by renewals, and by transactions that check or write the record
}

// Holder is the lock or session that owns a lease. It makes the writes and decodes the records. The
// lease notifies the Holder of renewals and of the loss of the lease. The lease does not hold
// Lease.mu during these calls.
type Holder interface {
	// Renewal returns the write of attempt a, which renews the grant. The write's condition
	// accepts a record with any of the given versions.
	Renewal(a Attempt, versions []string, ch protocol.Changes) *protocol.Write

	// Decode decodes an item as the record of the grant.
	Decode(item protocol.Item) (protocol.Record, error)

	// Stands reports whether item shows that the grant is current. The item is nil if there is no
	// record.
	Stands(item protocol.Item) bool

	// Lost is called when the lease is lost. It must call Lease.End with an error that
	// describes the loss.
	Lost(why Loss)

	// Extended is called after a renewal was applied, before another renewal can begin.
	Extended()

	// Renewed is called after a renewal attempt was applied. Failed is called after a renewal
	// attempt was not applied, unless the lease has ended. In both cases, the next attempt may
	// already have begun.
	Renewed(r Report)
	Failed(r Report)
}

// Loss describes how a lease was lost.
type Loss struct {
	Reason core.Reason
	Item   protocol.Item // the record; set only if Reason is Gone, and nil if there is no record
	Err    error         // error of the last renewal (Expired, Paused), of the decoder (Unreadable), or of the parent (WithParent)
}

// Reasons for the loss of a lease. Expired, Paused and Unreadable are also reasons in the
// public API. For Gone, the Holder derives a public reason from the record. For WithParent,
// the Holder uses the reason in the parent's error.
const (
	Expired    = core.Expired               // the lease has expired
	Paused     = core.Paused                // the lease has expired before the next renewal began: the process did not run
	Unreadable = core.Replaced              // the record that a renewal wrote cannot be decoded
	Gone       = core.Reason("gone")        // the record shows another grant, or a version that this client did not write
	WithParent = core.Reason("with parent") // the parent lease has ended
)

// Report is the result of one attempt to renew.
type Report struct {
	Requests  int
	Took      time.Duration
	Remaining time.Duration // set for Failed: how much longer the lease is trusted
	Err       error         // set for Failed: the error of the attempt
	Throttled bool          // set for Failed: DynamoDB throttled the attempt, or the attempt conflicted with a transaction
}

// Lease decides how long a grant may be trusted. It is safe for concurrent use.
type Lease struct {
	c      *Leases
	terms  Terms
	holder Holder

	over    chan struct{}              // closed when the trust has ended
	renews  ctxmutex.Mutex             // locked while a renewal is in progress
	pending attempts.Sequence[Attempt] // attempts to renew that have no answer yet

	mu     sync.Mutex // guards the fields below; never held across I/O
	cause  error      // why the trust has ended; nil while the trust lasts
	timing Timing
	manual bool
	until  decide.Instant
	record protocol.Record // the record after the last write that is known to have been applied
	begun  bool            // a renewal has begun since the last renewal that was applied
	// The short lease that another client wrote when it handed the key over. It is 0 if the key
	// was not handed over, or if a renewal has been applied since the hand-over.
	handed   time.Duration
	lastErr  error           // error of the last renewal; nil if it was applied
	outage   *decide.Instant // with ThroughOutage, time of the last renewal's reply if it said that DynamoDB is unavailable; nil otherwise
	expiry   *time.Timer
	renewal  *renewals.Lease // this lease in the Scheduler; nil before Start, or if the lease was manual at Start
	warnings []*Warning
}

// New returns the lease of the grant that attempt a has made. The parameter "record" is the record
// of that grant. The lease is trusted immediately, but its expiry timer and its background renewals
// begin only with Start.
func (c *Leases) New(terms Terms, a Attempt, record protocol.Record, holder Holder) *Lease {
	l := &Lease{
		c: c, terms: terms, holder: holder, timing: terms.Timing, manual: terms.Manual, record: record,
		over: make(chan struct{}), renews: ctxmutex.New(),
	}
	// The record has the lease of attempt a, which may be shorter than timing.Lease, as
	// after a hand-over. The first renewal writes timing.Lease.
	l.until = l.trustedFrom(l.timing.Scaled(a.Lease), a)
	if terms.Handed {
		l.handed = a.Lease
	}
	l.expiry = time.AfterFunc(math.MaxInt64, l.Look)
	l.expiry.Stop()
	return l
}

// Start starts the expiry timer and, unless the lease is manual, the background renewals.
func (l *Lease) Start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil {
		return
	}
	left := l.c.Now().Remaining(l.until)
	l.expiry.Reset(left)
	if l.manual {
		return
	}
	var soon time.Duration
	if l.handed > 0 {
		soon = decide.FirstRenewalOfHandOver(l.handed, left)
	}
	l.renewal = l.c.Scheduler.Add(l.timing.times(), left, soon, l.due)
}

// RestsOnHandOver reports whether another client has handed the key over, and no renewal has
// been applied since the hand-over.
func (l *Lease) RestsOnHandOver() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.handed > 0
}

// trustedFrom returns the end of the trust, counted from when attempt a was sent. It assumes that a
// was applied, and that no renewal follows. If the lease has a parent, the result is Never: the
// trust depends on the parent alone.
func (l *Lease) trustedFrom(t Timing, a Attempt) decide.Instant {
	if l.terms.Parent != nil {
		return decide.Never
	}
	return t.TrustedFrom(a.Sent)
}

// trustEnds returns when the trust ends if no further renewal is applied. The caller must
// hold l.mu.
func (l *Lease) trustEnds() decide.Instant {
	if l.terms.Parent == nil {
		return l.until
	}
	return l.until.Earlier(l.terms.Parent.TrustedUntil()) // cannot deadlock: a parent never locks the mutex of a child
}

// TrustedUntil returns when the trust ends if no further renewal is applied. A release, for
// example, may end the trust earlier, but does not change the result of TrustedUntil.
func (l *Lease) TrustedUntil() decide.Instant {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.trustEnds()
}

// Remaining returns how much longer the lease is trusted if no further renewal is applied.
func (l *Lease) Remaining() time.Duration { return l.c.Now().Remaining(l.TrustedUntil()) }

// Look reads the clocks, and ends the trust if the lease or its parent has expired. Ended
// and the expiry timer call Look.
func (l *Lease) Look() {
	if l.orphaned() && !l.IsOver() {
		l.holder.Lost(Loss{Reason: WithParent, Err: l.terms.Parent.Cause()})
		return
	}
	l.mu.Lock()
	if l.cause != nil {
		l.mu.Unlock()
		return
	}
	now := l.c.Now()
	if !l.hasRunOut(now) {
		next := now.Remaining(l.until)
		if next <= 0 { // expired, but trusted while DynamoDB is unavailable
			next = l.timing.Every
		}
		// Set the timer again. Timers stop while the machine is suspended, so the timer
		// would otherwise fire too late.
		l.expiry.Reset(next)
		l.mu.Unlock()
		return
	}
	loss := Loss{Reason: Expired, Err: l.lastErr}
	if !l.manual && !l.begun && !l.c.Scheduler.Waited(l.renewal) {
		// The next renewal was due long before the trust ended, and no other renewal delayed it.
		// But it has not begun, so the process or the machine was suspended.
		loss.Reason = Paused
	}
	l.mu.Unlock()
	l.holder.Lost(loss)
}

// throughOutage reports whether the lease stays trusted although it has expired. It stays trusted
// for one lease duration after the reply to the last renewal, if this reply means that DynamoDB is
// unavailable. The option ThroughOutage assumes that DynamoDB is then unavailable to all clients.
// The caller must hold l.mu.
func (l *Lease) throughOutage(now decide.Instant) bool {
	return l.outage != nil && !now.Past(l.outage.Add(l.timing.Lease))
}

// hasRunOut reports whether the trusted time of the lease has passed, and no outage extends it.
// It does not check the parent. The caller must hold l.mu.
func (l *Lease) hasRunOut(now decide.Instant) bool {
	return now.Past(l.until) && !l.throughOutage(now)
}

// End ends the trust permanently, with cause as its error. It returns false if an earlier
// call had ended the trust.
func (l *Lease) End(cause error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil {
		return false
	}
	l.cause = cause
	close(l.over)
	l.expiry.Stop()
	l.c.Scheduler.Remove(l.renewal)
	for _, w := range l.warnings {
		w.timer.Stop()
	}
	return true
}

// Ended returns why the trust has ended, or nil while the lease is trusted. It reads the
// clocks.
func (l *Lease) Ended() error {
	l.Look()
	return l.Cause()
}

// Cause returns the error that was passed to End, or nil before that. Unlike Ended, it does
// not read the clocks, so it may return nil although the lease has expired.
func (l *Lease) Cause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

// Over returns a channel that is closed when the trust has ended.
func (l *Lease) Over() <-chan struct{} { return l.over }

// IsOver reports whether the trust was ended. It does not read the clocks.
func (l *Lease) IsOver() bool { return l.Cause() != nil }

// orphaned reports whether the lease has a parent that is no longer trusted.
func (l *Lease) orphaned() bool { return l.terms.Parent != nil && l.terms.Parent.Ended() != nil }

// Outlived is called after this client has ended the lease itself, for example by a release. It
// reports whether the lease would have been lost by now in any case, because it has expired or its
// parent has ended. The first result describes this loss.
func (l *Lease) Outlived() (Loss, bool) {
	if l.orphaned() {
		return Loss{Reason: WithParent, Err: l.terms.Parent.Cause()}, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return Loss{Reason: Expired}, l.hasRunOut(l.c.Now())
}

// Root returns the lease that other clients observe: the parent, or the lease itself if it has no
// parent. Other clients may take the key over if they observe no renewal of this lease for one
// lease duration.
func (l *Lease) Root() *Lease {
	return cmp.Or(l.terms.Parent, l)
}

// Record returns the record after the last write that is known to have been applied.
func (l *Lease) Record() protocol.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.record
}

// Duration returns the duration of the lease that renewals write.
func (l *Lease) Duration() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.timing.Lease
}

// Longest returns the longest lease that the record may have: a renewal without an answer may have
// written a longer lease than Duration.
func (l *Lease) Longest() time.Duration {
	longest := l.Duration()
	for _, a := range l.pending.Unanswered() {
		longest = max(longest, a.Lease)
	}
	return longest
}

// Versions returns the versions that the record may have: the last version known to have
// been applied, and the versions of renewals without an answer. No version is added after
// the lease has ended.
func (l *Lease) Versions() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.versions()
}

func (l *Lease) versions() []string {
	return append([]string{l.record.Version}, l.pending.Versions()...)
}

// MayHaveStored reports whether a renewal without an answer may have stored the caller's
// data or attributes.
func (l *Lease) MayHaveStored() bool {
	return slices.ContainsFunc(l.pending.Unanswered(), func(a Attempt) bool { return a.Stores })
}
