package liveness

// Sessions returns how many sessions are remembered.
func (o *Observer) Sessions() int { return len(o.sessions) }
