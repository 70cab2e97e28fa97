package leasehold

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/seek"
)

// Get returns the record of one key, by a consistent read. The error is
// ErrNotFound if there is none, and a *RecordError if it is not a lock of this
// layout. For a read/write lock it returns the record of the writer, or of the
// reader that has held it longest; List yields all of them. Requests that fail are
// retried, for about ten seconds at most.
func (c *Client) Get(ctx context.Context, key string, opts ...GetOption) (Record, error) {
	k := Key{Partition: key}
	if err := noneNil(c, "get", k, opts); err != nil {
		return Record{}, err
	}
	for _, o := range opts {
		o.toGet(&k)
	}
	k, err := c.checkKey("get", k)
	if err != nil {
		return Record{}, err
	}
	var item protocol.Item
	err = c.retryRead(ctx, "get", k, func(ctx context.Context) error {
		found, err := c.requests.Read(ctx, protocol.Key(k))
		item = found
		return err
	})
	if err != nil {
		return Record{}, err
	}
	if item == nil {
		return Record{}, userErrors{c}.Missing(protocol.Key(k))
	}
	all, err := c.decodeAll(k, item)
	return all[0], err
}

// retryRead repeats a read that was throttled or had no answer, for as long as
// TryAcquire would.
func (c *Client) retryRead(ctx context.Context, op string, key Key, read func(context.Context) error) error {
	began := c.now()
	err := c.requests.Repeat(ctx, func() error {
		attempt, cancel := context.WithTimeout(ctx, attempts.Limit)
		defer cancel()
		return read(attempt)
	}, func(f *attempts.Failure) error {
		if c.now().Mono-began.Mono > seek.TryFor {
			return f
		}
		if f.Cause == decide.Busy {
			c.emit(ctx, Event{Kind: EventThrottled, Key: key, Requests: 1, Err: f.Err})
		}
		return nil
	})
	if f := attempts.FailureOf(err); f != nil {
		return opError(op, c.cfg.Table, key, attempts.Joined(context.Cause(ctx), f.Err))
	}
	return err
}

// List yields the records of the table, held and released. It reads them page by
// page. The reads are eventually consistent: a record may be seconds old. A
// *RecordError is about one item, and the listing goes on. Any other error ends the
// listing. A page that cannot be read is tried again, for about ten seconds at most.
func (c *Client) List(ctx context.Context, opts ...ListOption) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if slices.Contains(opts, nil) {
			yield(Record{}, fmt.Errorf("leasehold: list table %s: an option is nil: leave it out", c.cfg.Table))
			return
		}
		var l listing
		for _, o := range opts {
			o.toList(&l)
		}
		if l.partitioned && (l.Partition == "" || l.Prefix != "") {
			yield(Record{}, errors.New("leasehold: list: ListPartition needs a key, and does not go with ListPrefix"))
			return
		}
		if l.partitioned {
			if err := c.checkPrefix(Key{Partition: l.Partition}); err != nil {
				yield(Record{}, err)
				return
			}
		}
		var at attempts.Walk
		if l.after != nil {
			key, err := c.checkKey("list after", *l.after)
			if err == nil {
				at.Start, err = c.proto.Key(protocol.Key(key))
			}
			if err != nil {
				yield(Record{}, err)
				return
			}
		}
		for {
			var items []protocol.Item
			err := c.retryRead(ctx, "list", Key{Partition: l.Partition}, func(ctx context.Context) (err error) {
				items, err = c.requests.Page(ctx, l.Listing, &at)
				return err
			})
			if err != nil {
				yield(Record{}, err)
				return
			}
			for _, item := range items {
				key := Key(c.proto.Schema().KeyOf(item))
				if protocol.IsSessionKey(c.proto, protocol.Key(key)) || protocol.IsPermits(c.proto, item) {
					continue // not a lock, and not damaged either
				}
				all, err := c.decodeAll(key, item)
				for _, r := range all {
					if !yield(r, err) {
						return
					}
				}
			}
			if len(at.Start) == 0 {
				return
			}
		}
	}
}
