package leasehold

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold-go/leasehold/internal/decide"
)

// AcquireAny acquires one of keys: the first in the order given that is free. While
// none is free it watches them all, with one read for up to 100 of them. Options apply
// to every key. With NoWait the error is a *HeldError of the first key that is held.
//
// A key that ctx holds already is left out, unless Reentrant is given, which
// shares that grant. Without NoWait, a key that sorts below a key of a Group that
// ctx belongs to could make it wait for ever. If no other key is left, the error is
// ErrDeadlock.
func (c *Client) AcquireAny(ctx context.Context, keys []Key, opts ...AcquireOption) (*Lock, error) {
	wants, err := c.newRequests(keys, opts)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("leasehold: acquire one of %v and others: %w", wants[0].key, context.Cause(ctx))
	}
	var seek []*request
	var deadlock error
	neverFree := true
	for _, want := range wants {
		h := heldKeysOf(ctx).find(c, want.key)
		if h == nil {
			err := checkOrder(ctx, c, want)
			seek, deadlock = append(seek, want), errors.Join(deadlock, err)
			neverFree = neverFree && err != nil
			continue
		}
		err := h.refuses(want)
		if err == nil {
			return h.share(ctx, want)
		}
		deadlock = errors.Join(deadlock, err)
	}
	if neverFree {
		return nil, deadlock
	}
	if !c.enter() {
		return nil, ErrClosed
	}
	defer c.leave()
	c.waiting.Add(1)
	defer c.waiting.Add(-1)
	if len(seek) == 1 {
		return c.acquire(ctx, seek[0])
	}
	w := c.newAnyWaiter(ctx, seek)
	return c.acquireFirst(ctx, w, w.began)
}

// acquireFirst lets a task acquire one of its keys, for a call that began then.
func (c *Client) acquireFirst(ctx context.Context, w *anyWaiter, began decide.Instant) (*Lock, error) {
	c.detach(w.run)
	if ended := c.await(ctx, w.done); ended != nil {
		at, holder := w.waitsFor()
		if w.giveUp() {
			c.cleanUp(at.want, w.done)
			err := c.waitEnded(at.want, holder, ended, at.lastErr.Load())
			if held, ok := err.(*HeldError); ok { // made just now, never wrapped
				held.others = int(at.others.Load())
				err = w.withDamaged(held)
			}
			c.emitGaveUp(ctx, at.want.key, began, 0, err)
			return nil, err
		}
	}
	<-w.done
	if w.err != nil {
		c.emitGaveUp(ctx, w.waiters[0].want.key, began, w.requests, w.err)
		return nil, w.err
	}
	return c.granted(ctx, w.granted, began, w.requests, false)
}
