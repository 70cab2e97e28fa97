package simulation

import "time"

// seenBy identifies a version that a process has seen.
type seenBy struct {
	process int
	version string
}

// sees records that a reply shows a version to a process. The caller must hold c.mu.
func (c *checker) sees(by *process, version string) {
	this := seenBy{by.id, version}
	if _, ok := c.seen[this]; !ok && version != "" {
		c.seen[this] = time.Now()
	}
}

// watched returns how long the sender of r, by its own clock, had known a version when it
// sent r. It returns false if the sender had not seen the version. The caller must hold
// c.mu.
func (c *checker) watched(r *request, version string) (time.Duration, bool) {
	first, ok := c.seen[seenBy{r.by.id, version}]
	return time.Duration(float64(r.at.Sub(first)) * r.by.rate), ok
}
