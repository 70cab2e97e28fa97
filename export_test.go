package leasehold

import (
	"context"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/machine"
	"github.com/leasehold-go/leasehold/internal/observed"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// SetClocks puts a test's clocks in the place of a client's: the time since
// some origin, by the monotonic clock and by the one that runs on in suspend.
func SetClocks(c *Client, now func() (mono, boot time.Duration)) {
	c.now = func() decide.Instant {
		mono, boot := now()
		return decide.Instant{Mono: mono, Boot: boot}
	}
}

// SetChance puts a test's chance in the place of a client's: numbers in
// [0, 1), of which its pauses come.
func SetChance(c *Client, chance func() float64) { c.chance = chance }

// VirtualClocks lets both clocks of a client go on with the time of a synctest
// bubble: however long a test takes really, none of its leases runs out by it.
func VirtualClocks(c *Client) {
	start, began := machine.Now(), time.Now()
	c.now = func() decide.Instant { return start.Add(time.Since(began)) }
}

// BootObservation is an observation that another process of this boot of this
// machine made that long ago by the clock of c.
func BootObservation(c *Client, o Observation, ago time.Duration) Observation {
	o.boot, o.sinceBoot = machine.ClockID(), c.now().Boot-ago
	return o
}

// KillSession has c mark a session dead that it has read, as far as what it read
// lets it.
func KillSession(ctx context.Context, c *Client, id string) (bool, error) {
	dead, err := c.watchOf(c.proto.(protocol.Sharing), id).kill(ctx)
	return dead, err
}

// WatchedSessions is the number of sessions that c remembers.
func WatchedSessions(c *Client) int {
	c.watches.mu.Lock()
	defer c.watches.mu.Unlock()
	return len(c.watches.byID)
}

// RememberAtMost has c remember no more than n keys, or holders of read/write
// locks, that nobody watches.
func RememberAtMost(c *Client, n int) {
	c.observed, c.entries = observed.New[Key](n), observed.New[entryKey](n)
}

// SameClocks lets c read the clocks of another client, as a process of the same
// machine would.
func SameClocks(c, of *Client) { c.now = of.now }
