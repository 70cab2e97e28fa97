package leasehold

import (
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
)

// armed is an expiry warning of one handle.
type armed struct {
	warning
	of    *Lock
	timer *time.Timer
	given bool // since trust was last longer than left
}

// armWarnings has a handle's warnings given when they are due. h.mu is held, and
// trust lasts.
func (h *holding) armWarnings(l *Lock, warnings []warning) {
	remaining := h.remaining(h.c.now())
	for _, asked := range warnings {
		w := &armed{warning: asked, of: l}
		w.timer = time.AfterFunc(max(remaining-w.left, 0), func() { h.warn(w) })
		h.warnings = append(h.warnings, w)
	}
}

// dropWarnings ends those of a handle that is closed. h.mu is held.
func (h *holding) dropWarnings(l *Lock) {
	h.warnings = slices.DeleteFunc(h.warnings, func(w *armed) bool {
		if w.of == l {
			w.timer.Stop()
		}
		return w.of == l
	})
}

// warnAll gives the warnings that are due.
func (h *holding) warnAll() {
	h.mu.Lock()
	all := slices.Clone(h.warnings)
	h.mu.Unlock()
	for _, w := range all {
		h.warn(w)
	}
}

// warn gives a warning if it is due and was not given already.
func (h *holding) warn(w *armed) {
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

// rearmWarnings sets the timers of the warnings. h.mu is held, and trust lasts.
func (h *holding) rearmWarnings(now decide.Instant) {
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
