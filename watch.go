package leasehold

import (
	"context"
	"iter"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Sighting is what one look at a record has shown.
type Sighting struct {
	Holder   *Record // as stored; nil: the key is free
	Dead     bool    // Holder is dead, and its key can be taken over
	NewGrant bool    // this look is the first that shows this grant
}

// Watch reads the record of key again and again, as a waiter would but without
// asking for the key, and yields what each look has shown: the first one at
// once, later ones after pauses that grow to about Config.PollMax while nothing
// changes, and when the holder is due to be dead. It ends when ctx does.
//
// A holder is dead once its record has stood still for its lease, by this
// process's monotonic clock; with Config.SharedLease it is the holder's session
// that is watched, and where records say when they expire, that time counts. One
// that was dead and renews after all, because clocks run apart, is not dead any
// more. Changes that follow each other faster than the looks may be seen as one.
//
// Requests that DynamoDB does not answer are repeated for as long as it takes,
// and meanwhile nothing is yielded; the client tells of it with an
// EventWaitError and in its log, at once and then once a minute. An error that
// stays - no such table, access denied, a *RecordError, a read/write lock among
// them, ErrClosed - is yielded with the zero Sighting, and ends the sequence.
// A look is one read, two of a holder with a shared lease.
func (c *Client) Watch(ctx context.Context, key string, opts ...GetOption) iter.Seq2[Sighting, error] {
	return func(yield func(Sighting, error) bool) {
		k := Key{Partition: key}
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
		c.observed.Watch(k)
		defer c.observed.Unwatch(k)
		w := &recordWatch{c: c, key: k}
		pauses := c.waitPauses()
		for {
			sighting, err := w.look(ctx)
			f := attempts.FailureOf(err)
			switch {
			case c.isClosing():
				yield(Sighting{}, ErrClosed)
				return
			case ctx.Err() != nil:
				return
			case f != nil && f.Cause == decide.Refused:
				yield(Sighting{}, opError("watch", c.cfg.Table, k, f.Err))
				return
			case f != nil:
				w.trouble.report(ctx, c, k, f.Err)
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
			w.trouble.passed()
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

	trouble trouble

	looked bool
	last   *Record       // the holder that the last look has shown; nil: none
	since  time.Duration // monotonic: the first sight of the grant, or of the free key

	deadAt time.Duration // monotonic: when the holder is dead, if all stays as it is
	dead   bool
}

// look reads the record once, and its holder's session if it has one.
func (w *recordWatch) look(ctx context.Context) (Sighting, error) {
	asked, wall := w.c.now(), time.Now()
	item, err := w.c.requests.Read(ctx, protocol.Key(w.key))
	if err != nil {
		return Sighting{}, err
	}
	now := w.c.now()
	r, v, err := w.c.observe(w.key, item, now)
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
	deadAt := w.c.deadAt(*r, v, asked, wall)
	if proto, ok := w.c.proto.(protocol.Sharing); ok && r.session != "" {
		until, err := w.c.watchOf(proto, r.session).look(ctx, 0)
		if err != nil {
			return Sighting{}, err
		}
		deadAt = until
	}
	// Not by when the reply came: the holder may have renewed while it was
	// under way. An unsettled attempt is held by nobody.
	dead := asked.Mono >= deadAt || w.c.isUnsettled(w.key, r.Version)
	holder := *r // the caller's
	shown := Sighting{Holder: &holder, Dead: dead, NewGrant: w.last == nil || grantIDOf(*w.last) != grantIDOf(*r)}
	w.looked, w.last, w.since, w.deadAt, w.dead = true, r, v.Granted, deadAt, dead
	return shown, nil
}

// pause is the time until the next look, which is due when the holder is.
func (w *recordWatch) pause() time.Duration {
	now := w.c.now().Mono
	d := decide.Pause(now-w.since, w.c.cfg.PollMin, w.c.cfg.PollMax, w.c.chance())
	if w.last != nil && !w.dead {
		d = min(d, max(w.deadAt-now, 0))
	}
	return d
}
