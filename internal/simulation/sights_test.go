package simulation

import "time"

// sight is the first that a process has had of a version.
type sight struct {
	at   time.Time
	rate float64 // of the fastest clock by which the version has aged since
}

// seenBy names what a process has seen.
type seenBy struct {
	process int
	version string
}

// sees enters that a reply shows the process a version. c.mu is held.
func (c *checker) sees(by *process, version string) {
	this := seenBy{by.id, version}
	if _, ok := c.seen[this]; !ok && version != "" {
		c.seen[this] = sight{time.Now(), by.rate}
	}
}

// learns enters that a process is told what another has seen. Before it counts by its own
// clock, the version has aged by the other's and by the wall clocks.
func (c *checker) learns(by, from *process, version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	theirs, ok := c.seen[seenBy{from.id, version}]
	if !ok {
		return
	}
	this := seenBy{by.id, version}
	if mine, knows := c.seen[this]; knows && mine.at.Before(theirs.at) {
		theirs.at = mine.at
	}
	c.seen[this] = sight{theirs.at, max(theirs.rate, c.seen[this].rate, by.rate, 1)}
}

// watched is for how long the process that sent r had seen a version by then; false: it
// had not. c.mu is held.
func (c *checker) watched(r *request, version string) (time.Duration, bool) {
	first, ok := c.seen[seenBy{r.by.id, version}]
	return time.Duration(float64(r.at.Sub(first.at)) * first.rate), ok
}
