package leasehold

import (
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
)

// warning is a notice of one handle.
type warning struct {
	notice
	of    *Lock
	timer *time.Timer
	given bool // in this shortfall
}

// addNotices has a handle's notices given when they are due. h.mu is held, and
// trust lasts.
func (h *holding) addNotices(l *Lock, notices []notice) {
	remaining := h.remaining(h.c.now())
	for _, n := range notices {
		w := &warning{notice: n, of: l}
		w.timer = time.AfterFunc(max(remaining-w.left, 0), func() { h.warn(w) })
		h.warnings = append(h.warnings, w)
	}
}

// dropNotices ends those of a handle that is closed. h.mu is held.
func (h *holding) dropNotices(l *Lock) {
	h.warnings = slices.DeleteFunc(h.warnings, func(w *warning) bool {
		if w.of == l {
			w.timer.Stop()
		}
		return w.of == l
	})
}

// warnAll gives the notices that are due.
func (h *holding) warnAll() {
	h.mu.Lock()
	all := slices.Clone(h.warnings)
	h.mu.Unlock()
	for _, w := range all {
		h.warn(w)
	}
}

// warn gives a notice if it is due and has not been given in this shortfall.
func (h *holding) warn(w *warning) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w.of.closed || w.given {
		return
	}
	_, lost := h.cause.(*LostError) // set by lose, never wrapped
	remaining := h.remaining(h.c.now())
	switch {
	case lost, h.cause == nil && remaining <= w.left:
		w.given = true
		go w.fn(w.of)
	case h.cause == nil:
		w.timer.Reset(remaining - w.left)
	}
}

// rearmNotices sets the timers of the notices. h.mu is held, and trust lasts.
func (h *holding) rearmNotices(now decide.Instant) {
	remaining := h.remaining(now)
	for _, w := range h.warnings {
		if remaining > w.left {
			w.given = false
		}
		if !w.given {
			w.timer.Reset(max(remaining-w.left, 0))
		}
	}
}
