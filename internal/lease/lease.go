package lease

import (
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

// Leases is the state that the leases of one client share.
type Leases struct {
	*core.Env
	Scheduler     *renewals.Scheduler // schedules renewals in the background
	ThroughOutage bool                // leases stay trusted beyond their end while DynamoDB answers that it is unavailable

	sending atomic.Int64
}

// Sending returns how many renewals are in flight.
func (c *Leases) Sending() int { return int(c.sending.Load()) }

// Terms decide how a lease is trusted and renewed.
type Terms struct {
	Timing Timing
	Manual bool            // the lease is renewed only by calls of Renew
	Handed bool            // another client has handed the key over, so the lease begins with the short lease of that hand-over
	Parent *Lease          // the lease is trusted only while its parent is; nil if it has none
	Key    protocol.Key    // the key of the record
	Values context.Context // context values for renewals in the background
	Writes ctxmutex.Mutex  // held by renewals, and by transactions that name the record
}

// Holder owns a lease. It makes the writes, decodes the records, and is notified of
// renewals and of the end. Its methods are called without Lease.mu held.
type Holder interface {
	// Renewal returns the write of attempt a. The write's condition accepts a record at any
	// of the given versions.
	Renewal(a Attempt, versions []string, ch protocol.Changes) *protocol.Write

	// Decode reads an item as the record of the grant.
	Decode(item protocol.Item) (protocol.Record, error)

	// Stands reports whether item shows that the grant is current. item is nil if there is
	// no record.
	Stands(item protocol.Item) bool

	// Lost is called when the lease is lost. It must call Lease.End with an error that
	// describes the loss.
	Lost(why Loss)

	// Extended is called after an attempt was applied, before another renewal can begin.
	Extended()

	// Renewed or Failed is called after an attempt to renew that did not end the lease.
	// Other renewals are allowed again by then.
	Renewed(r Report)
	Failed(r Report)
}

// Loss describes how a lease was lost.
type Loss struct {
	Reason core.Reason
	Item   protocol.Item // the record, set only for Gone; nil if there is no record
	Err    error         // error of the last renewal (Expired, Paused), of the decoder (Unreadable) or of the parent (WithParent)
}

// Reasons for the loss of a lease. For Gone, the Holder derives the public reason from the
// record, and for WithParent from the error of the parent. The others are public reasons.
const (
	Expired    = core.Expired               // the lease has expired
	Paused     = core.Paused                // the lease expired before any renewal had started: the process did not run
	Unreadable = core.Replaced              // the record that a renewal wrote cannot be decoded
	Gone       = core.Reason("gone")        // the record shows another grant, or a version that is not ours
	WithParent = core.Reason("with parent") // the parent lease has ended
)

// Report is the result of one attempt to renew.
type Report struct {
	Requests  int
	Took      time.Duration
	Remaining time.Duration // for Failed: how much longer the lease is trusted
	Err       error         // for Failed: the error of the attempt
	Throttled bool          // for Failed: the attempt was throttled, or in conflict with a transaction
}

// Lease decides how long a grant may be trusted. It is safe for concurrent use.
type Lease struct {
	c      *Leases
	terms  Terms
	holder Holder

	over    chan struct{}              // closed when the trust has ended
	renews  ctxmutex.Mutex             // held by a renewal
	pending attempts.Sequence[Attempt] // renewals without an answer

	mu       sync.Mutex // guards the fields below; never held across I/O
	cause    error      // why the trust has ended; nil while the trust lasts
	timing   Timing
	manual   bool
	until    decide.Instant
	record   protocol.Record // the record after the last write that is known to have been applied
	begun    bool            // a renewal has started since the last one that was applied
	handed   time.Duration   // the short lease with which the key was handed over; 0 after an applied renewal, or if the key was not handed over
	lastErr  error           // error of the last renewal
	outage   *decide.Instant // time of the last reply if it said that DynamoDB is unavailable; nil otherwise
	expiry   *time.Timer
	renewal  *renewals.Lease // the lease in the Scheduler; nil before Start, and if the lease is renewed manually
	warnings []*Warning
}

// New returns the lease of the grant that attempt a made and record shows. The lease is
// trusted at once. It expires, and is renewed in the background, only after Start.
func (c *Leases) New(terms Terms, a Attempt, record protocol.Record, holder Holder) *Lease {
	l := &Lease{
		c: c, terms: terms, holder: holder, timing: terms.Timing, manual: terms.Manual, record: record,
		over: make(chan struct{}), renews: ctxmutex.New(),
	}
	l.until = l.trustedFrom(l.timing.Scaled(a.Lease), a) // the grant has the lease of a; the first renewal writes timing.Lease
	if terms.Handed {
		l.handed = a.Lease
	}
	l.expiry = time.AfterFunc(math.MaxInt64, l.Look)
	l.expiry.Stop()
	return l
}

// Start starts the expiry timer and, unless the lease is manual, the renewals.
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

// RestsOnHandOver reports whether another client has handed the key over, and no renewal
// has been applied since.
func (l *Lease) RestsOnHandOver() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.handed > 0
}

// trustedFrom returns when the trust from attempt a ends if a was applied. With a parent it
// returns Never, because the trust then depends on the parent alone: the lease in the record
// is only for clients that do not know sessions.
func (l *Lease) trustedFrom(t Timing, a Attempt) decide.Instant {
	if l.terms.Parent != nil {
		return decide.Never
	}
	return t.TrustedFrom(a.Sent)
}

// trustEnds returns when the trust ends without another renewal. The caller must hold l.mu.
func (l *Lease) trustEnds() decide.Instant {
	if l.terms.Parent == nil {
		return l.until
	}
	return l.until.Earlier(l.terms.Parent.TrustedUntil()) // no deadlock: a parent never locks the mutex of a child
}

// TrustedUntil returns when the trust ends without another renewal. If the lease has ended,
// it returns when the trust would have ended.
func (l *Lease) TrustedUntil() decide.Instant {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.trustEnds()
}

// Remaining returns how much longer the lease is trusted without another renewal.
func (l *Lease) Remaining() time.Duration { return l.c.Now().Remaining(l.TrustedUntil()) }

// Look reads the clocks, and ends the trust if it has expired. Ended calls Look, and so does
// the expiry timer.
func (l *Lease) Look() {
	if parent := l.terms.Parent; parent != nil {
		parent.Look()
		if parent.IsOver() && !l.IsOver() {
			l.holder.Lost(Loss{Reason: WithParent, Err: parent.Cause()})
			return
		}
	}
	l.mu.Lock()
	if l.cause != nil {
		l.mu.Unlock()
		return
	}
	now := l.c.Now()
	if !l.hasRunOut(now) {
		next := now.Remaining(l.until)
		if next <= 0 { // the lease is trusted through an outage
			next = l.timing.Every
		}
		// Set the timer again: timers stop while the machine is suspended, so the timer may
		// be late.
		l.expiry.Reset(next)
		l.mu.Unlock()
		return
	}
	loss := Loss{Reason: Expired, Err: l.lastErr}
	if !l.manual && !l.begun && !l.c.Scheduler.Waited(l.renewal) {
		// There was time for several renewals. If none has started, this process did not
		// run.
		loss.Reason = Paused
	}
	l.mu.Unlock()
	l.holder.Lost(loss)
}

// throughOutage reports whether the lease stays trusted after it has expired, because
// DynamoDB answers that it is unavailable. DynamoDB is then unavailable to all clients, so
// no other client can acquire the key. The trust lasts for one lease after the last such
// answer. The caller must hold l.mu.
func (l *Lease) throughOutage(now decide.Instant) bool {
	return l.c.ThroughOutage && l.outage != nil && !now.Past(l.outage.Add(l.timing.Lease))
}

// hasRunOut reports whether the lease, apart from its parent, has expired. The caller must
// hold l.mu.
func (l *Lease) hasRunOut(now decide.Instant) bool {
	return now.Past(l.until) && !l.throughOutage(now)
}

// End ends the trust permanently. It reports whether this call ended it: only the first
// call does.
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

// Ended returns why the trust has ended, or nil while it lasts.
func (l *Lease) Ended() error {
	l.Look()
	return l.Cause()
}

// Cause does what Ended does, without reading the clock.
func (l *Lease) Cause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

// Over returns a channel that is closed when the trust has ended.
func (l *Lease) Over() <-chan struct{} { return l.over }

// IsOver reports whether trust has ended, without reading the clock.
func (l *Lease) IsOver() bool { return l.Cause() != nil }

// Orphaned reports whether the lease has a parent whose trust has ended.
func (l *Lease) Orphaned() bool { return l.terms.Parent != nil && l.terms.Parent.Ended() != nil }

// Outlived returns how a lease that was given up would have been lost since then. It returns
// false if the lease would still be trusted.
func (l *Lease) Outlived() (Loss, bool) {
	if l.Orphaned() {
		return Loss{Reason: WithParent, Err: l.terms.Parent.Cause()}, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return Loss{Reason: Expired}, l.hasRunOut(l.c.Now())
}

// Root returns the lease that other clients observe: the parent or, without one, the lease
// itself. Other clients take the key over one lease after its last renewal.
func (l *Lease) Root() *Lease {
	if l.terms.Parent != nil {
		return l.terms.Parent
	}
	return l
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

// Versions returns the versions that the record may show: the last one known to have been
// applied, and the versions of renewals without an answer. No version is added after the
// lease has ended.
func (l *Lease) Versions() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.versions()
}

func (l *Lease) versions() []string {
	return append([]string{l.record.Version}, l.pending.Versions()...)
}

// MayHaveStored reports whether a renewal without an answer may have stored data or
// attributes of the caller.
func (l *Lease) MayHaveStored() bool {
	return slices.ContainsFunc(l.pending.Unanswered(), func(a Attempt) bool { return a.Stores })
}
