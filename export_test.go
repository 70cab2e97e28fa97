package leasehold

import (
	"context"
	"time"

	"github.com/leasehold-go/leasehold/internal/machine"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// BootObservation is an observation that another process of this boot of this
// machine made that long ago by the clock of c.
func BootObservation(c *Client, o Observation, ago time.Duration) Observation {
	o.boot, o.sinceBoot = machine.ClockID(), c.now().Boot-ago
	return o
}

// KillSession has c mark a session dead that it has read, as far as what it read
// lets it.
func KillSession(ctx context.Context, c *Client, id string) (bool, error) {
	return c.observer.SessionOf(protocol.Record{Session: id}).MarkDead(ctx)
}

// WatchedSessions is the number of sessions that c remembers.
func WatchedSessions(c *Client) int { return c.observer.Sessions() }

// EndLeaseAlone is the first half of what ends a lock.
func EndLeaseAlone(l *Lock, cause error) { l.h.lease.End(cause) }
