package leasehold

import (
	"context"
	"slices"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/hold"
	"github.com/leasehold-go/leasehold/internal/seek"
)

// Acquire waits until the key is granted or ctx ends. TryAcquire does not wait.
//
// ctx bounds the wait alone: the lock is held until it is released or lost.
// Client.Do and Lock.Bind end the work with ctx, too. If ctx ends before the key
// is granted, the error matches context.Cause(ctx) and, if somebody was seen to
// hold it, is a *HeldError. If ctx belongs to a lock of the same key, waiting
// could never end: the error is ErrDeadlock, unless Reentrant is given. Requests
// that fail are retried until ctx ends; one that DynamoDB refuses, as without
// permission, ends the wait with an *OpError.
func (c *Client) Acquire(ctx context.Context, key string, opts ...AcquireOption) (*Lock, error) {
	want, err := c.newRequest(key, opts)
	if err != nil {
		return nil, err
	}
	return c.acquireOne(ctx, want)
}

// TryAcquire is Acquire with NoWait: it returns the lock at once, or a *HeldError.
// It takes over a dead holder's key if this client has observed the record for as
// long as its lease. Where calls are too rare for that, add NoWaitUnlessDead.
func (c *Client) TryAcquire(ctx context.Context, key string, opts ...AcquireOption) (*Lock, error) {
	return c.Acquire(ctx, key, append(slices.Clip(opts), NoWait())...)
}

// acquireOne is Acquire of a checked request.
func (c *Client) acquireOne(ctx context.Context, want *request) (*Lock, error) {
	if ctx.Err() != nil {
		return nil, c.errorf("acquire", want.key(), "%w", context.Cause(ctx))
	}
	if h := c.holds.Of(ctx, want.Key); h != nil {
		if err := want.refuses(c, h); err != nil {
			return nil, err
		}
		return c.share(ctx, h, want)
	}
	if err := checkOrder(ctx, c, want); err != nil {
		return nil, err
	}
	return firstOf(c.sought(ctx, want.key(), func() (seek.Result, error) { return c.seek.One(ctx, want.wanted(c)) }))
}

// Do acquires key, calls fn and releases. It is Client.Acquire and Lock.Do in one.
// An error from before fn was called matches ErrNotRun.
func (c *Client) Do(ctx context.Context, key string, fn func(ctx context.Context, lock *Lock) error, opts ...AcquireOption) error {
	return inside{c}.Do(ctx, Key{Partition: key}, func() (*Lock, error) { return c.Acquire(ctx, key, opts...) }, fn)
}

// sought seeks keys for a call, for which Close waits, and tells what came of it.
func (c *Client) sought(ctx context.Context, first Key, search func() (seek.Result, error)) ([]seek.Holding, error) {
	if !c.holds.Enter() {
		return nil, c.afterClose("acquire", first)
	}
	defer c.holds.Leave()
	c.waiting.Add(1)
	defer c.waiting.Add(-1)
	began := c.now()
	found, err := search()
	return found.Held, c.granted(ctx, began, found, err)
}

// firstOf is the lock of the first grant.
func firstOf(held []seek.Holding, err error) (*Lock, error) {
	if err != nil {
		return nil, err
	}
	return lockOf(held[0].(*hold.Lock).First()), nil
}

// wanted is what to seek for the request.
func (r *request) wanted(c *Client) *seek.Want {
	r.Hold = func(ctx context.Context, g seek.Grant) seek.Holding {
		l := newLock(c)
		l.h.Once = !r.Once.None()
		return c.holds.Hold(ctx, &r.Want, g, &l.h, l.warned(r.warnings))
	}
	return &r.Want
}

// granted ends a call for which keys were sought. It gives them back if the client is
// closing: Close may not have seen them.
func (c *Client) granted(ctx context.Context, began decide.Instant, found seek.Result, err error) error {
	if err != nil {
		if err == ErrClosed { //nolint:errorlint // what wraps it names the key
			err = c.afterClose("acquire", Key(found.At))
		}
		c.emitGaveUp(ctx, Key(found.At), began, found.Requests, err)
		return err
	}
	undo := func() { c.holds.GiveBack(found.Held) }
	if c.holds.IsClosing() {
		c.holds.Detach(undo)
		return c.afterClose("acquire", Key(found.Held[0].(*hold.Lock).Key()))
	}
	requests, took := found.Requests, c.now().Mono-began.Mono
	for _, held := range found.Held {
		h := held.(*hold.Lock)
		c.emitOr(ctx, Event{Kind: EventGranted, Key: Key(h.Key()), Token: h.Token(), Took: took,
			Requests: requests, TookOver: h.Dead() != nil, Local: found.Local}, undo)
		requests = 0 // all of them are in the first event
	}
	return nil
}
