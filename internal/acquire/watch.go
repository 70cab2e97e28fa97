package acquire

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Observation reads the record of a key again and again, as a waiter does, for a caller
// that does not acquire the key. It is not safe for concurrent use.
type Observation struct {
	// These fields are the state of the key as found by the last call of Look that succeeded.
	Holder   *protocol.Record // nil if the key is free
	Dead     bool             // the holder is dead, so a client may take the key over
	NewGrant bool             // this was the first call of Look that showed the current grant

	c      *Acquirer
	key    protocol.Key
	since  time.Duration // monotonic time when a read first showed the current grant or, if the key is free, first showed it as free; zero before the first read
	deadAt time.Duration // monotonic time when the holder will be dead if it does not renew
}

// Observe returns a new Observation of key. It sends no request.
func (c *Acquirer) Observe(key protocol.Key) *Observation { return &Observation{c: c, key: key} }

// Look reads the record once. If the holder has a session, Look also reads the row of the
// session.
func (w *Observation) Look(ctx context.Context) error {
	wall, asked := w.c.Wall(), w.c.Now()
	item, err := w.c.Requests.Read(ctx, w.key)
	if err != nil {
		return err
	}
	now := w.c.Now()
	r, v, err := w.c.Observer.Observe(w.key, item, now)
	if err != nil {
		return err
	}
	if r.Released {
		if w.since == 0 || w.Holder != nil {
			w.since = now.Mono
		}
		w.Holder, w.Dead, w.NewGrant = nil, false, false
		return nil
	}
	deadAt := w.c.Observer.DeadAt(r, v, asked, wall)
	if session := w.c.Observer.SessionOf(r); session != nil {
		if _, deadAt, err = session.Look(ctx, 0, new(atomic.Int64)); err != nil {
			return err
		}
	}
	// The send time of the request counts, not the time of the reply: the holder may have renewed
	// while the reply was in flight. If the record shows an attempt in doubt, no caller holds the
	// key, so the holder counts as dead at once.
	w.Dead = asked.Mono >= deadAt || w.c.IsInDoubt(w.key, r)
	w.NewGrant = liveness.IsNewGrant(w.Holder, r)
	w.Holder, w.since, w.deadAt = &r, v.Granted, deadAt
	return nil
}

// Pause returns how long the caller should wait before it calls Look again. The pause ends
// no later than the time when the holder will be dead.
func (w *Observation) Pause() time.Duration {
	now := w.c.Now().Mono
	d := decide.Pause(durations.Less(now, w.since), w.c.PollMin, w.c.PollMax, w.c.Chance())
	if w.Holder != nil && !w.Dead {
		d = min(d, max(durations.Less(w.deadAt, now), 0))
	}
	return d
}
