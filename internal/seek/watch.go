package seek

import (
	"context"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Watch looks at a key as a waiter does, for somebody who does not want it. It is for one
// goroutine.
type Watch struct {
	c   *Client
	key protocol.Key

	looked bool
	last   Sight
	since  time.Duration // monotonic: when the grant, or the free key, was first seen
	deadAt time.Duration // monotonic: when the holder is dead, if its record does not change
}

// Sight is the result of one look.
type Sight struct {
	Holder   *protocol.Record // nil if the key is free
	Dead     bool             // Holder is dead, and its key can be taken over
	NewGrant bool             // this look is the first that shows this grant
}

// Watch returns a Watch of key.
func (c *Client) Watch(key protocol.Key) *Watch { return &Watch{c: c, key: key} }

// Look reads the record once, and its holder's session if it has one.
func (w *Watch) Look(ctx context.Context) (Sight, error) {
	wall, asked := w.c.Wall(), w.c.Now()
	item, err := w.c.Requests.Read(ctx, w.key)
	if err != nil {
		return Sight{}, err
	}
	now := w.c.Now()
	r, v, err := w.c.Observer.Observe(w.key, item, now)
	if err != nil {
		return Sight{}, err
	}
	if r == nil {
		if !w.looked || w.last.Holder != nil {
			w.since = now.Mono
		}
		w.looked, w.last = true, Sight{}
		return w.last, nil
	}
	deadAt := w.c.Observer.DeadAt(*r, v, asked, wall)
	if session := w.c.Observer.SessionOf(*r); session != nil {
		if _, deadAt, err = session.Look(ctx, 0); err != nil {
			return Sight{}, err
		}
	}
	// The time of the reply does not count: the holder may have renewed while it was
	// in flight. No client treats an unsettled attempt as held.
	dead := asked.Mono >= deadAt || w.c.IsUnsettled(w.key, r.Version)
	w.last = Sight{Holder: r, Dead: dead, NewGrant: liveness.IsNewGrant(w.last.Holder, *r)}
	w.looked, w.since, w.deadAt = true, v.Granted, deadAt
	return w.last, nil
}

// Pause is the time until the next look, at the latest when the holder would be dead.
func (w *Watch) Pause() time.Duration {
	now := w.c.Now().Mono
	d := decide.Pause(durations.Less(now, w.since), w.c.PollMin, w.c.PollMax, w.c.Chance())
	if w.last.Holder != nil && !w.last.Dead {
		d = min(d, max(durations.Less(w.deadAt, now), 0))
	}
	return d
}
