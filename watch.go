package leasehold

import (
	"context"
	"iter"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/recipe"
)

// Watch looks at the record of key with a waiter's rules and pauses, and takes
// no place in the local line.
func (i inner) Watch(ctx context.Context, key protocol.Key) iter.Seq2[recipe.Sight, error] {
	return func(yield func(recipe.Sight, error) bool) {
		c := i.c
		k, err := c.checkKey("watch", Key(key))
		if err != nil {
			yield(recipe.Sight{}, err)
			return
		}
		ctx, cancel := c.untilClosing(ctx)
		defer cancel()
		c.seen.watch(k)
		defer c.seen.unwatch(k)
		w := &recordWatch{c: c, key: k}
		for failures := 0; ; {
			sight, ans, err := w.look(ctx)
			switch {
			case c.isClosing():
				yield(recipe.Sight{}, ErrClosed)
				return
			case ctx.Err() != nil:
				return
			case ans.err != nil && ans.Cause == decide.Refused:
				yield(recipe.Sight{}, opError("get", c.cfg.Table, k, ans.err))
				return
			case err != nil:
				yield(recipe.Sight{}, err)
				return
			case ans.err != nil:
				w.trouble.tell(ctx, c, k, ans.err)
				if ans.Cause == decide.Busy {
					c.emit(ctx, Event{Kind: EventThrottled, Key: k, Requests: 1, Err: ans.err})
				}
				pause(ctx.Done(), c.cfg.PollMin+c.backoff(failures, 2*time.Second))
				failures++
				continue
			}
			failures = 0
			w.trouble.passed()
			if !yield(sight, nil) {
				return
			}
			pause(ctx.Done(), w.pause())
		}
	}
}

// recordWatch is what a watcher knows of the record it looks at.
type recordWatch struct {
	c   *Client
	key Key

	trouble trouble

	looked bool
	held   bool
	since  time.Duration // monotonic: the first sight of the grant, or of the free key

	deadAt time.Duration // monotonic: when the holder is dead, if all stays as it is
	dead   bool
}

// look reads the record once, and its holder's session if it has one.
func (w *recordWatch) look(ctx context.Context) (recipe.Sight, answer, error) {
	asked, wall := w.c.now(), time.Now()
	ans := w.c.read(ctx, w.key)
	if ans.err != nil {
		return recipe.Sight{}, ans, nil
	}
	now := w.c.now()
	r, seen, err := w.c.sighted(w.key, ans.item, now)
	if err != nil {
		return recipe.Sight{}, ans, err
	}
	if r == nil {
		if !w.looked || w.held {
			w.since = now.Mono
		}
		w.looked, w.held = true, false
		return recipe.Sight{}, ans, nil
	}
	w.looked, w.held, w.since = true, true, seen.granted
	w.deadAt = w.c.deadAt(*r, seen, asked, wall)
	if proto, ok := w.c.proto.(protocol.Sharing); ok && r.session != "" {
		until, ans, err := w.c.watchOf(proto, r.session).look(ctx, 0)
		if ans.err != nil || err != nil {
			return recipe.Sight{}, ans, err
		}
		w.deadAt = until
	}
	// Not by when the reply came: the holder may have renewed while it was
	// under way. An unsettled attempt is held by nobody.
	w.dead = asked.Mono >= w.deadAt || w.c.isUnsettled(w.key, r.Version)
	shown := r.protocol()
	return recipe.Sight{Record: &shown, Grant: grantOf(*r), Dead: w.dead}, ans, nil
}

// pause is the time until the next look, which is due when the holder is.
func (w *recordWatch) pause() time.Duration {
	now := w.c.now().Mono
	d := decide.Pause(now-w.since, w.c.cfg.PollMin, w.c.cfg.PollMax, w.c.chance())
	if w.held && !w.dead {
		d = min(d, max(w.deadAt-now, 0))
	}
	return d
}
