package simulation

import "time"

// seenBy identifies what a process has seen.
type seenBy struct {
	process int
	version string
}

// sees records that a reply shows the process a version. The caller must hold c.mu.
func (c *checker) sees(by *process, version string) {
	this := seenBy{by.id, version}
	if _, ok := c.seen[this]; !ok && version != "" {
		c.seen[this] = time.Now()
	}
}

// watched returns how long, by its clock, the process that sent r had known a version by
// then. It returns false if it had not seen the version. The caller must hold c.mu.
func (c *checker) watched(r *request, version string) (time.Duration, bool) {
	first, ok := c.seen[seenBy{r.by.id, version}]
	return time.Duration(float64(r.at.Sub(first)) * r.by.rate), ok
}
