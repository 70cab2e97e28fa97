package lease

import (
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/durations"
)

// Warning is a warning that a lease may soon be lost. The function Call is called each time the
// remaining trust falls to Left. If the lease is lost earlier, Call is called then. Between a
// hand-over and the first renewal, the lease is shorter, and Left in proportion.
type Warning struct {
	Left time.Duration
	Call func()

	timer *time.Timer
	given bool // Call was called, and no renewal has raised the remaining trust above Left since
}

// Warn adds the warning w to the lease. Once the remaining trust is at most w.Left, w.Call
// is called on a goroutine of its own.
func (l *Lease) Warn(w *Warning) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.timer = time.AfterFunc(l.spare(w), func() { l.fired(w) })
	l.warnings = append(l.warnings, w)
}

// Unwarn removes the warning w from the lease.
func (l *Lease) Unwarn(w *Warning) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.timer.Stop()
	l.warnings = slices.DeleteFunc(l.warnings, func(o *Warning) bool { return o == w })
}

// WarnOfLoss is called when the lease is lost. It calls the function of each warning. It skips a
// function that was called already, unless a renewal has since raised the remaining trust above
// Left.
func (l *Lease) WarnOfLoss() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.warnings {
		w.give()
	}
}

// give calls w.Call on a goroutine of its own, unless w.given is set. The caller must hold the
// lease's mu.
func (w *Warning) give() {
	if !w.given {
		w.given = true
		go w.Call()
	}
}

// fired is called when the timer of w fires. It reads the clocks, and gives the warning if the
// remaining trust is at most w.Left. If a renewal has extended the trust, fired resets the timer.
func (l *Lease) fired(w *Warning) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil || !slices.Contains(l.warnings, w) {
		return
	}
	if spare := l.spare(w); spare > 0 {
		w.timer.Reset(spare)
		return
	}
	w.give()
}

// Rearm sets the timers of the lease's warnings again. It must be called after each renewal of the
// lease's parent, because such a renewal prolongs the trust in this lease, too.
func (l *Lease) Rearm() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause == nil {
		l.rearm()
	}
}

// rearm does the work of Rearm. The caller must hold l.mu, and l.cause must be nil.
func (l *Lease) rearm() {
	for _, w := range l.warnings {
		spare := l.spare(w)
		w.given = w.given && spare <= 0
		if !w.given {
			w.timer.Reset(spare)
		}
	}
}

// spare returns how long it takes until the remaining trust has fallen to w.Left. It is not
// positive once it has. The caller must hold l.mu.
func (l *Lease) spare(w *Warning) time.Duration {
	left := w.Left
	if l.handed > 0 {
		left = durations.Scale(left, float64(l.handed)/float64(l.timing.Lease))
	}
	return durations.Less(l.remaining(), left)
}

// remaining returns how much longer the lease is trusted. It is negative once the trust has
// expired. The caller must hold l.mu.
func (l *Lease) remaining() time.Duration { return l.c.Now().Remaining(l.trustEnds()) }
