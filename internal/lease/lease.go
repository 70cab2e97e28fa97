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
	ThroughOutage bool                // trust continues after the lease while DynamoDB answers that it is unavailable

	sending atomic.Int64
}

// Sending returns how many renewals are in flight.
func (c *Leases) Sending() int { return int(c.sending.Load()) }

// Terms say how a lease is trusted and renewed.
type Terms struct {
	Timing Timing
	Manual bool            // only calls of Renew renew it
	Handed bool            // another client has handed it over, for the lease of the attempt: a short one
	Parent *Lease          // this lease is trusted only while its parent is; nil if it has none
	Key    protocol.Key    // the record's key
	Values context.Context // context values of background renewals
	Writes ctxmutex.Mutex  // for transactions that name the record, and renewals
}

// Holder owns a lease. It makes the writes, decodes the records, and is notified of
// its renewals and its end. No method is called with a mutex held.
type Holder interface {
	// Renewal returns the write of attempt a. Its condition names versions.
	Renewal(a Attempt, versions []string, ch protocol.Changes) *protocol.Write

	// Decode reads an item as the record of the grant.
	Decode(item protocol.Item) (protocol.Record, error)

	// Stands reports whether an item, nil for none, shows that the grant is current.
	Stands(item protocol.Item) bool

	// Lost is called when the lease is lost. It must call Lease.End with the
	// error.
	Lost(why Loss)

	// Extended is called after an attempt was applied, before the turn of the
	// renewal ends.
	Extended()

	// Renewed and Failed are called after an attempt to renew that did not end the
	// lease, when the turn of the renewal has ended.
	Renewed(r Report)
	Failed(r Report)
}

// Loss is how a lease was lost.
type Loss struct {
	Reason Reason
	Item   protocol.Item // Gone: the record; nil if it does not exist
	Err    error         // Expired, Paused: of the last renewal; Unreadable: of the decoder; WithParent: why that ended
}

// Reason is why a lease was lost.
type Reason int

// The reasons.
const (
	Expired    Reason = iota // its time is over
	Paused                   // its time is over, and no renewal had started: the process stood still
	Gone                     // the record shows another grant, or a version that is not ours
	Unreadable               // the record that a renewal wrote cannot be decoded
	WithParent               // its parent has ended
)

// Report is how one attempt to renew ended.
type Report struct {
	Requests  int
	Took      time.Duration
	Item      protocol.Item // Renewed: the record in the reply; nil if another reply showed it
	Remaining time.Duration // Failed: of trust
	Err       error         // Failed
	Throttled bool          // Failed: throttled, or in conflict
}

// Lease is how long a grant may be trusted. It is safe for concurrent use.
type Lease struct {
	c      *Leases
	terms  Terms
	holder Holder

	over    chan struct{}              // closed when trust has ended
	renews  ctxmutex.Mutex             // for renewals
	pending attempts.Sequence[Attempt] // renewals without an answer

	mu       sync.Mutex // guards what follows; never held across I/O
	cause    error      // why trust ended; nil while it lasts
	timing   Timing
	manual   bool
	until    decide.Instant
	record   protocol.Record // the record of the last write known to have been applied
	begun    bool            // a renewal has started since the last one that was applied
	handed   time.Duration   // the lease of the hand-over that trust rests on; 0 once a renewal was applied, or if there was none
	lastErr  error           // error of the last renewal
	outage   *decide.Instant // the last reply, if it was that DynamoDB is out
	expiry   *time.Timer
	renewal  *renewals.Lease // nil if renewed manually, or not started
	warnings []*Warning
}

// New returns the lease of the grant by attempt a, as record shows it. It is trusted
// at once, and may be asked, renewed and ended; it runs out and is renewed by itself
// after Start.
func (c *Leases) New(terms Terms, a Attempt, record protocol.Record, holder Holder) *Lease {
	l := &Lease{
		c: c, terms: terms, holder: holder, timing: terms.Timing, manual: terms.Manual, record: record,
		over: make(chan struct{}), renews: ctxmutex.New(),
	}
	l.until = l.trustedFrom(l.timing.Scaled(a.Lease), a) // the first renewal brings the lease of timing
	if terms.Handed {
		l.handed = a.Lease
	}
	l.expiry = time.AfterFunc(math.MaxInt64, l.Look)
	l.expiry.Stop()
	return l
}

// Start starts the timers of expiry and, unless the lease is manual, of renewals.
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

// RestsOnHandOver reports whether no renewal has been applied since another client handed
// the lease over.
func (l *Lease) RestsOnHandOver() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.handed > 0
}

// trustedFrom returns when trust in the lease itself ends once a has been applied. Under a
// parent that is never: the lease in the record is for clients that know nothing of the
// parent.
func (l *Lease) trustedFrom(t Timing, a Attempt) decide.Instant {
	if l.terms.Parent != nil {
		return decide.Never
	}
	return t.TrustedFrom(a.Sent)
}

// trustEnds returns when trust ends if nothing is renewed. l.mu is held.
func (l *Lease) trustEnds() decide.Instant {
	if l.terms.Parent == nil {
		return l.until
	}
	return l.until.Earlier(l.terms.Parent.TrustedUntil()) // a parent never locks the mutex of a child
}

// TrustedUntil returns when trust ends, or would have ended, if nothing is renewed.
func (l *Lease) TrustedUntil() decide.Instant {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.trustEnds()
}

// Remaining is the trust that is left now.
func (l *Lease) Remaining() time.Duration { return l.c.Now().Remaining(l.TrustedUntil()) }

// Look reads the clocks, and ends the trust if its time is over. Every question about the lease calls it, and
// so does the expiry timer.
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
	if remaining := now.Remaining(l.until); remaining > 0 {
		// The clock that runs on in suspend may be nearer to the end by now.
		l.expiry.Reset(remaining)
		l.mu.Unlock()
		return
	}
	if l.throughOutage(now) {
		l.expiry.Reset(l.timing.Every)
		l.mu.Unlock()
		return
	}
	loss := Loss{Reason: Expired, Err: l.lastErr}
	if !l.manual && !l.begun && (l.renewal == nil || !l.c.Scheduler.Waited(l.renewal)) {
		// Trust leaves time for several renewals. If none has even started,
		// this process did not run.
		loss.Reason = Paused
	}
	l.mu.Unlock()
	l.holder.Lost(loss)
}

// throughOutage reports whether the lease is trusted although its time is over, because
// DynamoDB answers that it cannot. If it answers everybody so, nobody else can be
// granted anything. An answer counts for a lease. l.mu is held.
func (l *Lease) throughOutage(now decide.Instant) bool {
	return l.c.ThroughOutage && l.outage != nil && !now.Past(l.outage.Add(l.timing.Lease))
}

// hasRunOut reports whether the lease's own time is over. l.mu is held.
func (l *Lease) hasRunOut(now decide.Instant) bool {
	return now.Past(l.until) && !l.throughOutage(now)
}

// End ends the trust for good, once, and reports whether this call did.
func (l *Lease) End(cause error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil {
		return false
	}
	l.cause = cause
	close(l.over)
	l.expiry.Stop()
	if l.renewal != nil {
		l.c.Scheduler.Remove(l.renewal)
	}
	for _, w := range l.warnings {
		w.timer.Stop()
	}
	return true
}

// Ended returns why trust ended, nil while it lasts.
func (l *Lease) Ended() error {
	l.Look()
	return l.Cause()
}

// Cause is Ended without reading the clock.
func (l *Lease) Cause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

// Over is closed once trust has ended.
func (l *Lease) Over() <-chan struct{} { return l.over }

// IsOver reports whether trust has ended, without reading the clock.
func (l *Lease) IsOver() bool {
	select {
	case <-l.over:
		return true
	default:
		return false
	}
}

// Orphaned reports whether the lease has a parent, which has ended.
func (l *Lease) Orphaned() bool { return l.terms.Parent != nil && l.terms.Parent.Ended() != nil }

// Outlived returns how a released lease would have been lost by now. It returns false if it
// would still be trusted.
func (l *Lease) Outlived() (Loss, bool) {
	if l.Orphaned() {
		return Loss{Reason: WithParent, Err: l.terms.Parent.Cause()}, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return Loss{Reason: Expired}, l.hasRunOut(l.c.Now())
}

// Root returns the lease that keeps others from the key, for as long as it is renewed
// and once more after that: the parent or, without one, the lease itself.
func (l *Lease) Root() *Lease {
	if l.terms.Parent != nil {
		return l.terms.Parent
	}
	return l
}

// Record returns the record as of the last write that is known to have been
// applied.
func (l *Lease) Record() protocol.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.record
}

// Duration returns the length of the lease that a renewal asks for.
func (l *Lease) Duration() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.timing.Lease
}

// Versions returns the versions that the record may show: the last one known to have been
// applied, and the versions of renewals without an answer. None is added after the lease
// has ended.
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
