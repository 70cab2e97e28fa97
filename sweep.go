package leasehold

import (
	"context"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// maxSwept is how many dead readers one write removes: a condition fails as a
// whole when one of them has gone meanwhile.
const maxSwept = 25

// sweep removes dead readers from the row that a reader's grant or renewal has
// shown. A writer takes them all away; but readers pass each other by, and where
// no writer ever comes the row, and what each write of it costs, would grow with
// every reader that dies. It is a write of its own, so that no grant and no
// renewal fails by it, and it is not repeated: the next reply shows what is left.
func (c *Client) sweep(ctx context.Context, want *request, item protocol.Item) {
	if want.mode != protocol.ModeRead {
		return
	}
	if by, err := want.side.Blockers(item, time.Now()); err != nil || len(by.By) > 0 && !by.Any {
		return // a writer waits, who takes them over
	}
	dead := c.deadReaders(item)
	if len(dead) == 0 {
		return
	}
	select {
	case c.sweeping <- struct{}{}:
	default:
		return // one at a time
	}
	send := func() {
		defer func() { <-c.sweeping }()
		c.write(ctx, want.side.Sweep(protocol.Key(want.key), dead))
	}
	if want.manual { // then nothing may be left in the background
		send()
	} else {
		c.detach(send)
	}
}

// deadReaders enters the readers that a reply has just shown into what this
// client has observed, and returns some of the dead: not the same as others who
// see the same row. They have been dead for another lease: who waits for one of
// them takes it over first, and can say from whom.
func (c *Client) deadReaders(item protocol.Item) []protocol.Record {
	readers, err := c.proto.(protocol.ReadWriting).Entries(item)
	if err != nil {
		return nil
	}
	now := c.now()
	var dead []protocol.Record
	for _, r := range readers {
		if r.Released || r.Mode != protocol.ModeRead {
			continue
		}
		v := c.observeEntry(recordOf(r), now)
		if decide.DeadByVersion(v.Since.Mono, 2*r.Lease) <= now.Mono {
			dead = append(dead, r)
		}
	}
	if extra := len(dead) - maxSwept; extra > 0 {
		from := int(c.chance() * float64(extra+1))
		dead = dead[from : from+maxSwept]
	}
	return dead
}
