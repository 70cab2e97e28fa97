package simulation

import "time"

// seenBy names what a process has seen.
type seenBy struct {
	process int
	version string
}

// sees enters that a reply shows the process a version. c.mu is held.
func (c *checker) sees(by *process, version string) {
	this := seenBy{by.id, version}
	if _, ok := c.seen[this]; !ok && version != "" {
		c.seen[this] = time.Now()
	}
}

// watched returns for how long, by its clock, the process that sent r had then seen a
// version. It returns false if it had not. c.mu is held.
func (c *checker) watched(r *request, version string) (time.Duration, bool) {
	first, ok := c.seen[seenBy{r.by.id, version}]
	return time.Duration(float64(r.at.Sub(first)) * r.by.rate), ok
}
