package leasehold

import (
	"context"
	"errors"
	"fmt"

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
	var sought []*seek.Want
	var deadlock error
	neverFree := true
	for _, want := range wants {
		h := c.holds.Of(ctx, want.Key)
		if h == nil {
			err := checkOrder(ctx, c, want)
			sought, deadlock = append(sought, want.wanted(c)), errors.Join(deadlock, err)
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
	return firstOf(c.sought(ctx, wants[0].key(), func() (seek.Result, error) { return c.seek.First(ctx, sought) }))
}
