package leasehold

import (
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
)

// SetClocks puts a test's clocks in the place of a client's: the time since
// some origin, by the monotonic clock and by the one that runs on in suspend.
func SetClocks(c *Client, now func() (mono, boot time.Duration)) {
	c.now = func() decide.Instant {
		mono, boot := now()
		return decide.Instant{Mono: mono, Boot: boot}
	}
}

// BootObservation is an observation that another process of this boot of this
// machine made that long ago.
func BootObservation(o Observation, ago time.Duration) Observation {
	o.boot, o.sinceBoot = bootID(), sinceBoot()-ago
	return o
}
