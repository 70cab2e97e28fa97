package leasehold

import (
	"context"
	"iter"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
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
		ctx, cancel := c.holds.UntilClosing(ctx)
		defer cancel()
		c.observer.Records.Watch(protocol.Key(k))
		defer c.observer.Records.Unwatch(protocol.Key(k))
		w := c.seek.Watch(protocol.Key(k))
		var trouble seek.Trouble
		pauses := c.seek.Pauses()
		for {
			seen, err := w.Look(ctx)
			f := attempts.FailureOf(err)
			switch {
			case c.holds.IsClosing():
				yield(Sighting{}, c.afterClose("watch", k))
				return
			case ctx.Err() != nil:
				return
			case f != nil && f.Cause == decide.Refused:
				yield(Sighting{}, opError("watch", c.cfg.Table, k, f.Err))
				return
			case f != nil:
				trouble.Report(ctx, c.seek, protocol.Key(k), opError("watch", c.cfg.Table, k, f.Err))
				if f.Cause == decide.Busy {
					c.emit(ctx, Event{Kind: EventThrottled, Key: k, Requests: 1, Err: f.Err})
				}
				c.requests.Pause(ctx, &pauses)
				continue
			case err != nil:
				yield(Sighting{}, err)
				return
			}
			pauses.Reset()
			trouble.Passed()
			shown := Sighting{Dead: seen.Dead, NewGrant: seen.NewGrant}
			if seen.Holder != nil {
				r := recordOf(*seen.Holder)
				shown.Holder = &r
			}
			if !yield(shown, nil) {
				return
			}
			attempts.Wait(ctx, w.Pause())
		}
	}
}
