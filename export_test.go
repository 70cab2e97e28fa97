package leasehold

import (
	"context"

	"github.com/leasehold-go/leasehold/internal/hold"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/seek"
)

// KillSession has c mark a session dead that it has read, as far as what it read
// lets it.
func KillSession(ctx context.Context, c *Client, id string) (bool, error) {
	return c.observer.SessionOf(protocol.Record{Session: id}).MarkDead(ctx)
}

// EndLeaseAlone is the first half of what ends a lock.
func EndLeaseAlone(l *Lock, cause error) { l.h.Lock().Lease().End(cause) }

// EndSessionAlone is the first half of what ends the session of c.
func EndSessionAlone(c *Client, cause error) { sessionOf(c).Lease().End(cause) }

// SharedBySession is the number of locks that c's session is renewed for.
func SharedBySession(c *Client) int {
	if !c.holds.Shares() {
		return 0
	}
	return len(sessionOf(c).(interface{ Locks() []*hold.Lock }).Locks())
}

func sessionOf(c *Client) seek.Session {
	s, err := c.holds.Sessions().Session(context.Background())
	if err != nil {
		panic(err)
	}
	return s
}
