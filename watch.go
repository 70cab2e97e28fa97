package leasehold

import (
	"context"
	"iter"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/seek"
)

// Sighting is what one read of a record has shown.
type Sighting struct {
	Holder   *Record // as stored; nil: the key is free
	Dead     bool    // Holder is dead, and its key can be taken over
	NewGrant bool    // this read is the first that shows this grant
}

// Watch reads the record of key again and again, and yields what each read has
// shown. It never acquires the key. The first read is sent at once. Then it pauses
// for longer and longer while nothing changes, up to about Config.PollMax, but it
// reads when the holder will be dead if it does not renew. It ends when ctx does.
//
// A holder is dead once its record has not changed for one lease, by this process's
// monotonic clock. With Config.SharedLease the holder's session is watched instead.
// In layouts whose records say when they expire, that time counts. A dead holder
// that renews after all, because clocks run apart, is not dead any more. Changes
// that are faster than the reads may be seen as one.
//
// Requests that DynamoDB does not answer are repeated for as long as it takes.
// Meanwhile nothing is yielded, and the client reports it with an EventWaitError and
// in its log, at once and then once a minute. An error that does not pass is yielded
// with the zero Sighting, and ends the sequence: no such table, access denied,
// ErrClosed, or a *RecordError, which a read/write lock is as well. Each look costs
// one read, or two if the holder has a shared lease.
func (c *Client) Watch(ctx context.Context, key string, opts ...GetOption) iter.Seq2[Sighting, error] {
	return func(yield func(Sighting, error) bool) {
		k := Key{Partition: key}
		if err := noneNil(c, "watch", k, opts); err != nil {
			yield(Sighting{}, err)
			return
		}
		for _, o := range opts {
			o.toGet(&k)
		}
		k, err := c.checkKey("watch", k)
		if err != nil {
			yield(Sighting{}, err)
			return
		}
		ctx, cancel := c.untilClosing(ctx)
		defer cancel()
		c.observer.Records.Watch(protocol.Key(k))
		defer c.observer.Records.Unwatch(protocol.Key(k))
		w := &recordWatch{c: c, key: k}
		pauses := c.seek.Pauses()
		for {
			sighting, err := w.look(ctx)
			f := attempts.FailureOf(err)
			switch {
			case c.isClosing():
				yield(Sighting{}, c.afterClose("watch", k))
				return
			case ctx.Err() != nil:
				return
			case f != nil && f.Cause == decide.Refused:
				yield(Sighting{}, opError("watch", c.cfg.Table, k, f.Err))
				return
			case f != nil:
				w.trouble.Report(ctx, c.seek, protocol.Key(k), opError("watch", c.cfg.Table, k, f.Err))
				if f.Cause == decide.Busy {
					c.throttled(ctx, k, 0)(f.Err)
				}
				c.requests.Pause(ctx, &pauses)
				continue
			case err != nil:
				yield(Sighting{}, err)
				return
			}
			pauses.Reset()
			w.trouble.Passed()
			if !yield(sighting, nil) {
				return
			}
			attempts.Wait(ctx, w.pause())
		}
	}
}

// recordWatch is what a watcher knows of the record it looks at.
type recordWatch struct {
	c   *Client
	key Key

	trouble seek.Trouble

	looked bool
	last   *protocol.Record // the holder that the last look has shown; nil: none
	since  time.Duration    // monotonic: when the grant, or the free key, was first seen

	deadAt time.Duration // monotonic: when the holder is dead, if its record does not change
	dead   bool
}

// look reads the record once, and its holder's session if it has one.
func (w *recordWatch) look(ctx context.Context) (Sighting, error) {
	wall, asked := w.c.wall(), w.c.now()
	item, err := w.c.requests.Read(ctx, protocol.Key(w.key))
	if err != nil {
		return Sighting{}, err
	}
	now := w.c.now()
	r, v, err := w.c.observer.Observe(protocol.Key(w.key), item, now)
	if err != nil {
		return Sighting{}, err
	}
	if r == nil {
		if !w.looked || w.last != nil {
			w.since = now.Mono
		}
		w.looked, w.last = true, nil
		return Sighting{}, nil
	}
	deadAt := w.c.observer.DeadAt(*r, v, asked, wall)
	if session := w.c.observer.SessionOf(*r); session != nil {
		if _, deadAt, err = session.Look(ctx, 0); err != nil {
			return Sighting{}, err
		}
	}
	// The time of the reply does not count: the holder may have renewed while it was
	// in flight. No client treats an unsettled attempt as held.
	dead := asked.Mono >= deadAt || w.c.seek.IsUnsettled(protocol.Key(w.key), r.Version)
	holder := recordOf(*r)
	shown := Sighting{Holder: &holder, Dead: dead, NewGrant: liveness.IsNewGrant(w.last, *r)}
	w.looked, w.last, w.since, w.deadAt, w.dead = true, r, v.Granted, deadAt, dead
	return shown, nil
}

// pause is the time until the next look, at the latest when the holder would be dead.
func (w *recordWatch) pause() time.Duration {
	now := w.c.now().Mono
	d := decide.Pause(now-w.since, w.c.cfg.PollMin, w.c.cfg.PollMax, w.c.chance())
	if w.last != nil && !w.dead {
		d = min(d, max(w.deadAt-now, 0))
	}
	return d
}
