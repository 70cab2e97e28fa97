package seek

import (
	"context"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// maxSwept is how many dead readers one write removes: the whole write fails if one of
// them has gone meanwhile.
const maxSwept = 25

// Sweep removes dead readers from the row that the reply to a reader's grant or renewal
// has shown. A writer would remove them all. But without writers the row, and the cost
// of each write, would grow with every reader that dies. It is a write of its own, so
// that no grant and no renewal fails because of it. It is not retried: the next reply
// shows what is left.
func (c *Client) Sweep(values context.Context, want *Want, item protocol.Item) {
	if want.Mode != protocol.ModeRead {
		return
	}
	if by, err := want.Side.Blockers(item, c.Wall()); err != nil || len(by.By) > 0 && !by.Any {
		return // a writer waits, and will take them over
	}
	dead := c.deadReaders(want.Key, item)
	if len(dead) == 0 {
		return
	}
	if !c.sweeping.CompareAndSwap(false, true) {
		return // one at a time
	}
	c.afterwards(want, func() {
		defer c.sweeping.Store(false)
		c.write(values, want.Side.Sweep(want.Key, dead))
	})
}

// deadReaders observes the readers that a reply has just shown, and returns some dead
// ones, at random, so that clients which see the same row remove different ones. They
// have been dead for another lease: by then whoever waits for one of them has taken it
// over, and reported that.
func (c *Client) deadReaders(key protocol.Key, item protocol.Item) []protocol.Record {
	readers, err := c.Proto.(protocol.ReadWriting).Entries(item)
	if err != nil {
		return nil
	}
	wall, now := c.Wall(), c.Now()
	var dead []protocol.Record
	for _, r := range readers {
		if r.Released || r.Mode != protocol.ModeRead {
			continue
		}
		v := c.Observer.ObserveEntry(r, now)
		if decide.Sum(c.Observer.DeadAt(r, v, now, wall), r.Lease) <= now.Mono && !c.Holds(key, r.Grant) {
			dead = append(dead, r)
		}
	}
	if extra := len(dead) - maxSwept; extra > 0 {
		from := int(c.Chance() * float64(extra+1))
		dead = dead[from : from+maxSwept]
	}
	return dead
}
