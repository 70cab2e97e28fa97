package leasehold

import (
	"context"
	"fmt"
	"iter"

	"github.com/leasehold-go/leasehold/internal/acquire"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/breaking"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Get returns the record of one key, by a consistent read. The error is ErrNotFound if there is
// no item, and a *RecordError if the item is not a lock of this layout. Failed requests are
// retried for about ten seconds.
func (c *Client) Get(ctx context.Context, key string, opts ...KeyOption) (Record, error) {
	k, err := c.keyWith("get", key, opts)
	if err != nil {
		return Record{}, err
	}
	var item protocol.Item
	err = c.retryRead(ctx, "get", k, func() (err error) {
		item, err = c.env.Requests.Read(ctx, k)
		return err
	})
	if err != nil {
		return Record{}, err
	}
	if item == nil {
		return Record{}, c.env.Errors.Missing(k)
	}
	r, err := c.env.Decode(k, item)
	return recordOf(r), err
}

// retryRead repeats a read that was throttled or had no answer. Like TryAcquire, it does so for
// at most acquire.TryFor.
func (c *Client) retryRead(ctx context.Context, op string, key Key, read func() error) error {
	began := c.env.Now()
	err := c.env.Requests.Repeat(ctx, read, func(f *attempts.Failure) error {
		if c.env.Now().Mono-began.Mono > acquire.TryFor {
			return f
		}
		if f.Cause == decide.Busy {
			c.env.ReportThrottled(ctx, key, 0, f.Err)
		}
		return nil
	})
	if f := attempts.FailureOf(err); f != nil {
		return c.env.Errors.Failed(op, key, attempts.Joined(attempts.Cause(ctx), f.Err))
	}
	return err
}

// List yields the records of the table, held and released. The reads are eventually
// consistent: a record may be seconds old. A *RecordError concerns one item; any other error
// ends the listing. Requests are retried as in Get.
func (c *Client) List(ctx context.Context, opts ListOptions) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if opts.Partition != "" && opts.Prefix != "" {
			yield(Record{}, fmt.Errorf("leasehold: list table %s: Partition and Prefix: use one of them", c.cfg.Table))
			return
		}
		var at attempts.Walk
		if opts.After != (Key{}) {
			key, err := c.checkKey("list after", opts.After)
			if err != nil {
				yield(Record{}, err)
				return
			}
			at.Start, _ = c.env.Proto.Key(key) // cannot fail, as the key was checked above
		}
		for {
			var items []protocol.Item
			err := c.retryRead(ctx, "list", Key{Partition: opts.Partition}, func() (err error) {
				items, err = c.env.Requests.Page(ctx, attempts.Listing{Partition: opts.Partition, Prefix: opts.Prefix}, &at)
				return err
			})
			if err != nil {
				yield(Record{}, err)
				return
			}
			for _, item := range items {
				key := c.env.Proto.Schema().KeyOf(item)
				if protocol.IsSessionKey(c.env.Proto, key) {
					continue // the row is a session, not a lock
				}
				r, err := c.env.Decode(key, item)
				if !yield(recordOf(r), err) {
					return
				}
			}
			if len(at.Start) == 0 {
				return
			}
		}
	}
}

// Sighting is the result of one read of a record.
type Sighting struct {
	Holder   *Record // the stored record; nil if the key is free
	Dead     bool    // Holder is dead, and its key can be taken over
	NewGrant bool    // this read is the first that shows Holder's grant
}

// Watch polls the record of key until ctx ends, and yields the result of each read, the
// first immediately. It never acquires the key. Pauses grow to about Config.PollMax while
// nothing changes; Watch may miss changes between reads.
//
// A holder is dead once its record (under Config.SharedLease its session) has not changed
// for one lease, by this process's monotonic clock. In layouts that store an expiry time, it
// is dead once that time has passed. A dead holder that renews after all, because clocks
// drift, is live again.
//
// Failed requests are retried as in Acquire; EventWaitError and the log report them. Other
// errors, such as ErrClosed or a *RecordError, are yielded with the zero Sighting, and end
// the sequence.
func (c *Client) Watch(ctx context.Context, key string, opts ...KeyOption) iter.Seq2[Sighting, error] {
	return func(yield func(Sighting, error) bool) {
		k, err := c.keyWith("watch", key, opts)
		if err != nil {
			yield(Sighting{}, err)
			return
		}
		ctx, cancel := c.env.UntilClosing(ctx)
		defer cancel()
		c.acquirer.Observer.Records.Pin(k)
		defer c.acquirer.Observer.Records.Unpin(k)
		w := c.acquirer.Observe(k)
		var trouble acquire.Trouble
		answered := false
		pauses := c.acquirer.Pauses()
		for {
			err := w.Look(ctx)
			f := attempts.FailureOf(err).After(answered)
			switch {
			case c.env.IsClosing():
				yield(Sighting{}, c.env.AfterClose("watch", k))
				return
			case ctx.Err() != nil:
				return
			case f != nil && f.Cause == decide.Refused:
				yield(Sighting{}, c.env.Errors.Failed("watch", k, f.Err))
				return
			case f != nil:
				trouble.Report(ctx, c.acquirer, k, &attempts.Failure{Cause: f.Cause, Err: c.env.Errors.Failed("watch", k, f.Err)})
				if f.Cause == decide.Busy {
					c.env.ReportThrottled(ctx, k, 0, f.Err)
				}
				c.env.Requests.Pause(ctx, &pauses)
				continue
			case err != nil:
				yield(Sighting{}, err)
				return
			}
			pauses.Reset()
			trouble.Passed()
			answered = true
			if !yield(Sighting{Holder: recordIn(w.Holder), Dead: w.Dead, NewGrant: w.NewGrant}, nil) {
				return
			}
			attempts.Wait(ctx, w.Pause())
		}
	}
}

// Break ends the grant in r (from Get or List) and frees its key. It frees nothing if the record
// now has another grant (*ChangedError).
//
// The holder learns of the break at the next renewal of its lock or shared lease. Until then its
// unfenced work may overlap with the next holder's, but its Commits fail immediately. The holder's
// LostError, and Record.Broken, say which client broke the grant, when and why. A layout whose free
// keys have no record cannot store a Reason: the error is then an *UnsupportedError.
//
// After ErrHolderUntold the grant is broken, but the holder's shared lease could not be
// notified: the holder learns of it within twenty minutes. After ErrUnknownOutcome the grant may
// have ended, even if the error also matches ErrChanged or ErrNotFound.
func (c *Client) Break(ctx context.Context, r Record, opts BreakOptions) error {
	key, err := c.lockKey("break", r.Key)
	switch {
	case err != nil:
		return err
	case r.Version == "":
		return c.env.Errorf("break", key, "the record lacks its version: pass one that Get or List returned")
	case opts.Reason != "" && !c.env.Caps.KeepOnRelease:
		return c.cfg.unsupported("reason of Break: a free key has no record")
	}
	if problem := protocol.ReasonProblem(opts.Reason); problem != "" {
		return c.env.Errorf("break", key, "%s", problem)
	}
	b := breaking.Break{
		Env: c.env,
		Grant: protocol.Record{ // only the fields that the write of the break and its condition use
			Key: key, Owner: r.Owner, Token: r.Token, Grant: r.Grant, Version: r.Version, Session: r.Session,
			Data: r.Data, Attributes: r.Attributes, Done: (*protocol.Done)(r.Done),
		},
		Reason: opts.Reason, Unrenewed: opts.IfUnrenewed,
	}
	return c.env.Call(ctx, "break", key, b.Run)
}

// ForgetDone removes the done mark of r (a record from Get or List), so that the next call does the
// work again. A held key stays held. If the key now has another mark, the error matches ErrChanged.
// ForgetDone may be repeated.
func (c *Client) ForgetDone(ctx context.Context, r Record) error {
	if c.env.Native == nil {
		return c.cfg.unsupported("Once or Every")
	}
	key, err := c.checkKey("forget", r.Key)
	switch {
	case err != nil:
		return err
	case r.Done == nil:
		return c.env.Errorf("forget", key, "the record does not say that anything was done: pass one that Get or List returned")
	}
	var tried attempts.Sequence[attempts.Version]
	return c.env.Call(ctx, "forget", key, func(ctx context.Context) error {
		return c.env.Outlive(ctx, "forget", key, &tried, func() error { return c.forget(ctx, key, protocol.Done(*r.Done), &tried) })
	})
}

// forget removes one mark. It succeeds once the mark is gone from the record, whether one of its
// attempts or another client has removed the mark.
func (c *Client) forget(ctx context.Context, key Key, mark protocol.Done, tried *attempts.Sequence[attempts.Version]) error {
	r := tried.Run(context.WithoutCancel(ctx), ctx, c.env.Requests, attempts.Operation[attempts.Version]{
		Key: key,
		Next: func() (attempts.Version, *protocol.Write) {
			return attempts.Version(protocol.NewVersion()), c.env.Native.Unmark(key, mark)
		},
		Shows: func(item protocol.Item, sent []attempts.Version) (attempts.Version, bool) {
			shown, err := c.env.Native.Decode(item)
			return sent[len(sent)-1], item == nil || err == nil && shown.Done == nil
		},
	})
	switch r.Outcome {
	case attempts.Applied:
		return nil
	case attempts.Rejected:
		return c.env.Errorf("forget", key, "%w: the done mark has changed or is gone: read the record again", ErrChanged)
	case attempts.Unanswered:
		return c.env.UnknownOutcome("forget", key, attempts.Joined(attempts.Cause(ctx), r.Err))
	}
	return c.env.Errors.Failed("forget", key, attempts.Joined(attempts.Cause(ctx), r.Err))
}
