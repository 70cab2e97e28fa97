package leasehold

import (
	"context"
	"fmt"
	"slices"

	"github.com/leasehold-go/leasehold/internal/hold"
	"github.com/leasehold-go/leasehold/internal/seek"
)

// AcquireAll acquires all keys or none, without deadlock in whatever order they
// are given. Up to 100 are acquired in one transaction. A key given twice counts
// once. Options apply to every key, WithSortKey to those without a sort key.
//
// It holds nothing while it waits. Only if a transaction is refused five times or does
// not fit, if what it has granted cannot be read, or if there are more than 100 keys,
// does it acquire them one by one, in their order, and hold some while it waits for
// others. With NoWait the error is a *HeldError
// of the first key in order that is held. After an error none is held: what had been
// acquired is released before AcquireAll returns, within Config.ReleaseGrace.
//
// If ctx belongs to a lock of one of the keys, or to a Group with a key that
// sorts above one of them, waiting might never end, and the error is ErrDeadlock:
// acquire them all in one call. Reentrant shares the grants that ctx has; with
// NoWait the order does not matter.
func (c *Client) AcquireAll(ctx context.Context, keys []Key, opts ...AcquireOption) (*Group, error) {
	wants, err := c.newRequests(keys, opts)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, c.errorf("acquire", wants[0].key(), "%w", context.Cause(ctx))
	}
	shared := map[Key]*hold.Lock{}
	var sought []*seek.Want
	for _, want := range wants {
		want.InOrder = true
		if h := c.holds.Of(ctx, want.Key); h != nil {
			if err := want.refuses(c, h); err != nil {
				return nil, err
			}
			shared[want.key()] = h
			continue
		}
		if err := checkOrder(ctx, c, want); err != nil {
			return nil, err
		}
		sought = append(sought, want.wanted(c))
	}
	slices.SortFunc(sought, func(a, b *seek.Want) int { return a.Key.Compare(b.Key) })
	granted := map[Key]*hold.Lock{}
	if len(sought) > 0 {
		all, err := c.sought(ctx, wants[0].key(), func() (seek.Result, error) { return c.seek.All(ctx, sought) })
		if err != nil {
			return nil, err
		}
		for _, held := range all {
			h := held.(*hold.Lock)
			granted[Key(h.Key())] = h
		}
	}
	locks := make([]*Lock, len(wants))
	var gone error
	for i, want := range wants {
		if h := granted[want.key()]; h != nil {
			locks[i] = lockOf(h.First())
			continue
		}
		if locks[i], err = c.share(ctx, shared[want.key()], want); err != nil {
			gone = err
		}
	}
	locks = slices.DeleteFunc(locks, func(l *Lock) bool { return l == nil })
	switch {
	case gone == nil:
		return newGroup(ctx, locks), nil
	case len(locks) > 0:
		_ = newGroup(ctx, locks).Release(ctx) // reported as events
	}
	return nil, gone
}

// newRequests turns keys into requests, in order of first mention, or says what
// is wrong with one of them before anything is sent.
func (c *Client) newRequests(keys []Key, opts []AcquireOption) ([]*request, error) {
	if len(keys) == 0 {
		return nil, fmt.Errorf("leasehold: acquire in table %s: no keys: name at least one", c.cfg.Table)
	}
	var wants []*request
	seen := map[Key]bool{}
	for _, key := range keys {
		own := opts
		if key.Sort != "" {
			own = append(slices.Clip(opts), WithSortKey(key.Sort))
		}
		want, err := c.newRequest(key.Partition, own)
		if err != nil {
			return nil, err
		}
		if !seen[want.key()] {
			seen[want.key()] = true
			want.OneOfSeveral = len(keys) > 1
			if want.OneOfSeveral && !want.Once.None() {
				return nil, c.cfg.unsupported("Once or Every for several keys: acquire one key with it")
			}
			wants = append(wants, want)
		}
	}
	return wants, nil
}

// checkOrder refuses to wait for a key that sorts below one of a Group that ctx
// belongs to: whoever holds it may be waiting for that one.
func checkOrder(ctx context.Context, c *Client, want *request) error {
	if want.NoWait {
		return nil
	}
	if h := c.holds.Above(ctx, want.Key); h != nil {
		return &orderError{table: c.cfg.Table, want: want.key(), held: Key(h.Key())}
	}
	return nil
}

// orderError says that two keys are acquired out of order. It is ErrDeadlock.
type orderError struct {
	table      string
	want, held Key
}

func (e *orderError) Error() string {
	return fmt.Sprintf("leasehold: acquire %v in table %s: this context holds %v, which AcquireAll takes after it: acquire both in one AcquireAll, or with NoWait",
		e.want, e.table, e.held)
}

func (e *orderError) Is(target error) bool { return target == ErrDeadlock }
