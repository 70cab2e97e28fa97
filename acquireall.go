package leasehold

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

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
		return nil, fmt.Errorf("leasehold: acquire %v in table %s: %w", wants[0].key(), c.cfg.Table, context.Cause(ctx))
	}
	shared := map[Key]*holding{}
	var sought []*seek.Want
	for _, want := range wants {
		want.ordered = true
		if h := heldKeysOf(ctx).find(c, want.key()); h != nil {
			if err := h.refuses(want); err != nil {
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
	if !c.enter() {
		return nil, c.afterClose("acquire", wants[0].key())
	}
	defer c.leave()
	slices.SortFunc(sought, func(a, b *seek.Want) int { return compareKeys(Key(a.Key), Key(b.Key)) })
	granted := map[Key]*holding{}
	if len(sought) > 0 {
		c.waiting.Add(1)
		began := c.now()
		found, err := c.seek.All(ctx, sought)
		err = c.granted(ctx, began, found, err)
		c.waiting.Add(-1)
		if err != nil {
			return nil, err
		}
		for _, of := range found.Held {
			h := of.(*holding)
			granted[h.key] = h
		}
	}
	locks := make([]*Lock, len(wants))
	var gone error
	for i, want := range wants {
		if h := granted[want.key()]; h != nil {
			locks[i] = h.first
			continue
		}
		if locks[i], err = shared[want.key()].share(ctx, want); err != nil {
			gone = err
		}
	}
	g := newGroup(ctx, c, slices.DeleteFunc(locks, func(l *Lock) bool { return l == nil }))
	if gone != nil {
		_ = g.Release(ctx) // reported as events
		return nil, gone
	}
	return g, nil
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
		of := opts
		if key.Sort != "" {
			of = append(slices.Clip(opts), WithSortKey(key.Sort))
		}
		want, err := c.newRequest(key.Partition, of)
		if err != nil {
			return nil, err
		}
		if !seen[want.key()] {
			seen[want.key()] = true
			want.OneOfSeveral = len(keys) > 1
			wants = append(wants, &want)
		}
	}
	return wants, nil
}

// compareKeys is the order in which several keys are taken: the same in every
// process.
func compareKeys(a, b Key) int {
	return cmp.Or(strings.Compare(a.Partition, b.Partition), strings.Compare(a.Sort, b.Sort))
}

func compareHoldings(a, b *holding) int { return compareKeys(a.key, b.key) }

// checkOrder refuses to wait for a key that sorts below one of a Group that ctx
// belongs to: whoever holds it may be waiting for that one.
func checkOrder(ctx context.Context, c *Client, want *request) error {
	if want.NoWait {
		return nil
	}
	if h := heldKeysOf(ctx).above(c, want.key()); h != nil {
		return &orderError{table: c.cfg.Table, want: want.key(), held: h.key}
	}
	return nil
}

// above returns a holding of AcquireAll that ctx belongs to and whose key sorts
// above key, if it still holds.
func (h *heldKeys) above(c *Client, key Key) *holding {
	for ; h != nil; h = h.outer {
		if h.by.c == c && h.by.want.ordered && compareKeys(h.by.key, key) > 0 && h.by.ended() == nil {
			return h.by
		}
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
