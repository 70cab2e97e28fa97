package leasehold

// warn has the warnings given that were asked for with a handle. h.mu is held, or
// nobody else has the handle yet.
func (l *Lock) warn(asked []warning) {
	for _, w := range asked {
		l.warnings = append(l.warnings, l.h.lease.Warn(w.left, func() { w.fn(l) }))
	}
}

// dropWarnings ends those of a handle that is closed. h.mu is held.
func (l *Lock) dropWarnings() {
	for _, w := range l.warnings {
		w.Cancel()
	}
}
