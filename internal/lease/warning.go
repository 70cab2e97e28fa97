package lease

import (
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/durations"
)

// Warning is called once each time that less than a given trust remains, and when the lease
// is lost.
type Warning struct {
	l     *Lease
	left  time.Duration
	fn    func()
	timer *time.Timer
	given bool // since trust was last longer than left
}

// Warn has fn called, on a goroutine of its own, once no more trust than left
// remains.
func (l *Lease) Warn(left time.Duration, fn func()) *Warning {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := &Warning{l: l, left: left, fn: fn}
	w.timer = time.AfterFunc(durations.Less(l.remaining(), left), w.fired)
	l.warnings = append(l.warnings, w)
	return w
}

// Cancel ends the warning.
func (w *Warning) Cancel() {
	w.l.mu.Lock()
	defer w.l.mu.Unlock()
	w.timer.Stop()
	w.l.warnings = slices.DeleteFunc(w.l.warnings, func(o *Warning) bool { return o == w })
}

// WarnOfLoss gives the warnings that are still due when the lease is lost.
func (l *Lease) WarnOfLoss() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.warnings {
		w.give()
	}
}

// give gives the warning, unless it was given already. w.l.mu is held.
func (w *Warning) give() {
	if !w.given {
		w.given = true
		go w.fn()
	}
}

// fired gives the warning if it is due by the clocks: that its timer has fired does not
// prove it.
func (w *Warning) fired() {
	w.l.mu.Lock()
	defer w.l.mu.Unlock()
	if w.l.cause != nil || !slices.Contains(w.l.warnings, w) {
		return
	}
	if remaining := w.l.remaining(); remaining > w.left {
		w.timer.Reset(durations.Less(remaining, w.left))
		return
	}
	w.give()
}

// Rearm sets the warnings again after the end of trust has changed.
func (l *Lease) Rearm() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause == nil {
		l.rearm()
	}
}

// rearm is Rearm. l.mu is held, and trust lasts.
func (l *Lease) rearm() {
	remaining := l.remaining()
	for _, w := range l.warnings {
		if remaining > w.left {
			w.given = false
		}
		if !w.given {
			w.timer.Reset(durations.Less(remaining, w.left))
		}
	}
}

// remaining is the trust that is left now. l.mu is held.
func (l *Lease) remaining() time.Duration { return l.c.Now().Remaining(l.trustEnds()) }
