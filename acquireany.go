package leasehold

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold-go/leasehold/internal/hold"
	"github.com/leasehold-go/leasehold/internal/seek"
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
		return nil, fmt.Errorf("leasehold: acquire one of %v and others: %w", wants[0].key(), context.Cause(ctx))
	}
	var sought []*request
	var deadlock error
	neverFree := true
	for _, want := range wants {
		h := c.holds.Of(ctx, want.Key)
		if h == nil {
			err := checkOrder(ctx, c, want)
			sought, deadlock = append(sought, want), errors.Join(deadlock, err)
			neverFree = neverFree && err != nil
			continue
		}
		err := want.refuses(c, h)
		if err == nil {
			return c.share(ctx, h, want)
		}
		deadlock = errors.Join(deadlock, err)
	}
	if neverFree {
		return nil, deadlock
	}
	if !c.holds.Enter() {
		return nil, c.afterClose("acquire", wants[0].key())
	}
	defer c.holds.Leave()
	c.waiting.Add(1)
	defer c.waiting.Add(-1)
	if len(sought) == 1 {
		return c.acquire(ctx, sought[0])
	}
	all := make([]*seek.Want, len(sought))
	for i, want := range sought {
		all[i] = want.wanted(c)
	}
	began := c.now()
	found, err := c.seek.First(ctx, all)
	if err := c.granted(ctx, began, found, err); err != nil {
		return nil, err
	}
	return lockOf(found.Held[0].(*hold.Lock).First()), nil
}
