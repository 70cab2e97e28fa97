package lease

import (
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/durations"
)

// Warning is a function to call once each time the remaining trust falls to a limit. If the
// lease is lost before the call, the function is called then.
type Warning struct {
	Left time.Duration
	Call func()

	l     *Lease
	timer *time.Timer
	given bool // the function has been called since the remaining trust was last greater than Left
}

// Warn arranges for w.Call to be called, on a goroutine of its own, once the remaining trust
// is at most w.Left.
func (l *Lease) Warn(w *Warning) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.l = l
	w.timer = time.AfterFunc(durations.Less(l.remaining(), w.Left), w.fired)
	l.warnings = append(l.warnings, w)
}

// Cancel ends the warning.
func (w *Warning) Cancel() {
	w.l.mu.Lock()
	defer w.l.mu.Unlock()
	w.timer.Stop()
	w.l.warnings = slices.DeleteFunc(w.l.warnings, func(o *Warning) bool { return o == w })
}

// WarnOfLoss is called when the lease is lost. It calls the function of every warning that
// was not given yet.
func (l *Lease) WarnOfLoss() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.warnings {
		w.give()
	}
}

// give calls the function unless it was called already. The caller must hold w.l.mu.
func (w *Warning) give() {
	if !w.given {
		w.given = true
		go w.Call()
	}
}

// fired calls the function if the warning is due by the clocks. A fired timer alone does
// not prove that.
func (w *Warning) fired() {
	w.l.mu.Lock()
	defer w.l.mu.Unlock()
	if w.l.cause != nil || !slices.Contains(w.l.warnings, w) {
		return
	}
	if remaining := w.l.remaining(); remaining > w.Left {
		w.timer.Reset(durations.Less(remaining, w.Left))
		return
	}
	w.give()
}

// Rearm sets the warnings again after the end of the trust has changed.
func (l *Lease) Rearm() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause == nil {
		l.rearm()
	}
}

// rearm does the work of Rearm. The caller must hold l.mu, and the trust must not have
// ended.
func (l *Lease) rearm() {
	remaining := l.remaining()
	for _, w := range l.warnings {
		if remaining > w.Left {
			w.given = false
		}
		if !w.given {
			w.timer.Reset(durations.Less(remaining, w.Left))
		}
	}
}

// remaining returns how much longer the lease is trusted. The caller must hold l.mu.
func (l *Lease) remaining() time.Duration { return l.c.Now().Remaining(l.trustEnds()) }
