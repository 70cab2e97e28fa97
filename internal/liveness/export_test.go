package liveness

// Sessions returns the number of sessions that the observer remembers.
func (o *Observer) Sessions() int { return len(o.sessions) }
