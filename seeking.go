package leasehold

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/seek"
)

// newSeek returns what seeks keys for the client.
func newSeek(c *Client) *seek.Client {
	_, marks := c.proto.(protocol.Marking)
	s := &seek.Client{
		Requests: c.requests, Proto: c.proto, Owner: c.owner, Observer: c.observer,
		Now: c.now, Wall: c.wall, Chance: c.requests.Chance,
		PollMin: c.cfg.PollMin, PollMax: c.cfg.PollMax, Lines: seek.NewLines(c.cfg.LocalHandOver, c.cfg.PollMin, c.cfg.PollMax),
		Expires: func() time.Time { return c.holds.Expires(true, marks) }, Detach: c.holds.Detach, AwaitGrace: c.holds.AwaitGrace, GiveBack: c.holds.GiveBack,
		Closing: c.holds.Closing(), Errors: userErrors{c}, Listener: seekListener{c}, Holds: c.holds.Holds, Sessions: c.holds.Sessions(),
	}
	if c.cfg.Line {
		s.Line = c.proto.(protocol.Lining)
	}
	return s
}

// seekListener turns what happens meanwhile into events, and lines of the log.
type seekListener struct{ c *Client }

func (l seekListener) Waiting(ctx context.Context, key protocol.Key, holder *protocol.Record, place int, undo func()) {
	r := recordOf(*holder)
	e := Event{Kind: EventWaiting, Key: Key(key), Holder: &r, Place: place}
	if undo == nil {
		l.c.emit(ctx, e)
	} else {
		l.c.emitOr(ctx, e, undo)
	}
}

func (l seekListener) Throttled(ctx context.Context, key protocol.Key, requests int, err error) {
	l.c.emit(ctx, Event{Kind: EventThrottled, Key: Key(key), Requests: requests, Err: err})
}

func (l seekListener) Failing(ctx context.Context, key protocol.Key, err error) {
	l.c.waitFails.warn(ctx, l.c, Key(key), err)
	// One that watches has said so already.
	if op, damaged := (*OpError)(nil), (*RecordError)(nil); !errors.As(err, &op) && !errors.As(err, &damaged) {
		err = opError("acquire", l.c.cfg.Table, Key(key), err)
	}
	l.c.emit(ctx, Event{Kind: EventWaitError, Key: Key(key), Err: err})
}
