package leasehold

import (
	"context"
	"maps"
	"math"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// sessionWatch watches another client's session for all who wait here for one of its
// locks: they share what one of them reads.
type sessionWatch struct {
	c     *Client
	proto protocol.Sharing
	key   Key
	used  time.Duration // monotonic: when somebody last asked for it; watches.mu guards it
	place chan struct{} // one place: for reading or writing the row; guards the rest

	looked time.Duration // monotonic; when the row was read last
	known  bool          // it has been read
	dead   bool          // for good
	record Record        // as it was read
	deadAt time.Duration // monotonic: when it may be marked dead, if it is not renewed
}

// noRow stands for the version of a row that is not there.
const noRow = "none"

// watches are a client's session watches. When there are many, those that nobody has
// asked for in a while are dropped: a session's row is soon read again.
type watches struct {
	mu   sync.Mutex
	byID map[string]*sessionWatch
	many int // with so many, look for those to drop
}

// With fewer than fewWatches none is dropped, and none that was asked for within
// keepWatch: a waiter asks every PollMax, and so does an election's observer.
const (
	fewWatches = 100
	keepWatch  = 15 * time.Minute
)

func (c *Client) watchOf(proto protocol.Sharing, id string) *sessionWatch {
	now := c.now().Mono
	c.watches.mu.Lock()
	defer c.watches.mu.Unlock()
	w := c.watches.byID[id]
	if w == nil {
		c.watches.letGo(now - max(keepWatch, 2*c.cfg.PollMax))
		w = &sessionWatch{c: c, proto: proto, key: Key(proto.SessionKey(id)), place: make(chan struct{}, 1)}
		if c.watches.byID == nil {
			c.watches.byID = map[string]*sessionWatch{}
		}
		c.watches.byID[id] = w
	}
	w.used = now
	return w
}

// letGo drops the watches that were last asked for before that time. It does so each
// time their number has doubled. ws.mu is held.
func (ws *watches) letGo(before time.Duration) {
	if len(ws.byID) < max(ws.many, fewWatches) {
		return
	}
	maps.DeleteFunc(ws.byID, func(_ string, w *sessionWatch) bool { return w.used < before })
	ws.many = 2 * len(ws.byID)
}

// enter waits for the place; false: ctx has ended.
func (w *sessionWatch) enter(ctx context.Context) bool {
	select {
	case w.place <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (w *sessionWatch) leave() { <-w.place }

// look returns when the session may be marked dead, by a read that is not older than
// fresh. For a dead session that is math.MinInt64.
func (w *sessionWatch) look(ctx context.Context, fresh time.Duration) (time.Duration, error) {
	if !w.enter(ctx) {
		return 0, &attempts.Failure{Cause: decide.Unreachable, Err: context.Cause(ctx)}
	}
	defer w.leave()
	if w.dead || w.known && w.c.now().Mono-w.looked < fresh {
		return w.deadAt, nil
	}
	item, err := w.c.requests.Read(ctx, protocol.Key(w.key))
	if err != nil {
		return 0, err
	}
	err = w.observe(item)
	return w.deadAt, err
}

// observe records what the row shows. w.place is taken.
func (w *sessionWatch) observe(item protocol.Item) error {
	now := w.c.now()
	before, watched := w.record.Version, w.known
	w.known, w.looked = true, now.Mono
	// If the row is not there, TTL has deleted it long after the session's death,
	// or somebody by hand. Then its locks may still be trusted for up to a lease.
	// How long that is, only our own configuration can tell.
	w.record = Record{Key: w.key, Version: noRow, Lease: w.c.cfg.Lease}
	if item != nil {
		r, err := w.proto.Session().Decode(item)
		if err != nil {
			return w.c.recordError(w.key, item, err)
		}
		w.record = recordOf(r)
	}
	if w.record.Released {
		w.setDead()
		return nil
	}
	v := w.c.observed.Note(w.key, versionOf(w.record, now))
	if watched && w.record.Version == before {
		return nil // c.observed may have forgotten it to make room for other keys
	}
	w.deadAt = decide.DeadByVersion(v.Since.Mono, w.record.Lease)
	return nil
}

// setDead records that the session is dead. w.place is taken.
func (w *sessionWatch) setDead() {
	w.dead, w.deadAt = true, math.MinInt64
	w.c.observed.Forget(w.key)
}

// markDead marks the session dead if its version has not changed for its lease. It
// reports whether the session is dead.
func (w *sessionWatch) markDead(ctx context.Context) (bool, error) {
	if !w.enter(ctx) {
		return false, &attempts.Failure{Cause: decide.Unreachable, Err: context.Cause(ctx)}
	}
	defer w.leave()
	if w.dead {
		return true, nil
	}
	if w.c.now().Mono < w.deadAt {
		return false, nil // somebody else has read a newer version since
	}
	if w.record.Version == noRow {
		w.setDead()
		return true, nil
	}
	var tried attempts.Sequence[attempt]
	r := tried.Try(context.WithoutCancel(ctx), w.c.requests, attempts.Operation[attempt]{
		Key: protocol.Key(w.key),
		Next: func() (attempt, *protocol.Write) {
			a := w.c.newAttempt(0)
			return a, w.proto.Session().Break(w.record.protocol(), protocol.Break{Version: a.version, Expires: w.c.expires(false)})
		},
	})
	switch r.Outcome {
	case attempts.Applied:
		w.setDead()
		return true, nil
	case attempts.Rejected:
		err := w.observe(r.Item)
		return w.dead, err
	}
	return false, r.Failure()
}

// observationOf returns the observation of a held record, or of the session's row if
// that is renewed in its place. A record that this client holds itself was observed
// now.
func (c *Client) observationOf(r Record) Observation {
	if r.mode != protocol.ModePlain {
		return Observation{} // each of its holders is observed by itself
	}
	key := r.Key
	if proto, ok := c.proto.(protocol.Sharing); ok && r.session != "" {
		key = Key(proto.SessionKey(r.session))
		if c.sharing != nil {
			if own := c.sharing.get(); own != nil && own.id == r.session {
				r = own.currentRecord()
			}
		}
	}
	v, ok := c.observed.Of(key)
	if !ok && r.Key == key && r.Version != "" {
		v, ok = versionOf(r, c.now()), true
	}
	if !ok {
		return Observation{}
	}
	return newObservation(key, v)
}

// isSession reports whether the row of key is a session's.
func (c *Client) isSession(key Key) bool {
	proto, ok := c.proto.(protocol.Sharing)
	return ok && proto.IsSessionKey(protocol.Key(key))
}
