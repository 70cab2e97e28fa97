package leasehold

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/leasehold-go/leasehold/internal/acquire"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/hold"
)

// Acquire waits until the key is granted or ctx ends. If ctx ends first, the error is a *HeldError
// with the holder. The lock is held until it is released or lost: ctx bounds only the wait. If ctx
// derives from the context of a lock of the same key, the error is ErrDeadlock, unless Reentrant is
// given.
//
// In the native layout all waiting calls are in one queue, in the key's record. The write that
// releases the key hands it to the first call: TryAcquire fails. CommitAndRelease, MarkDone and
// DeleteOnRelease free the key, as does a holder that no renewal has told of the queue. A hand-over
// has half the former lease, but 3 s (or all of it) to 10 s: Renew before work that relies on
// Lock.TrustedUntil. Waiters of other layouts poll (PollMax).
//
// Failed requests are retried until ctx ends; the error then contains the last failure.
// Refused credentials are retried only if DynamoDB has accepted this client before. Denied
// requests are retried only if DynamoDB has answered a request of this call before. Other
// refusals end the call: see OpError.
func (c *Client) Acquire(ctx context.Context, key string, opts ...AcquireOption) (*Lock, error) {
	return c.AcquireAny(ctx, Keys(key), opts...)
}

// TryAcquire is Acquire with NoWait.
func (c *Client) TryAcquire(ctx context.Context, key string, opts ...AcquireOption) (*Lock, error) {
	return c.Acquire(ctx, key, append(slices.Clip(opts), NoWait())...)
}

// Do acquires key and calls Lock.Do. The error is ErrNotRun if fn did not run.
func (c *Client) Do(ctx context.Context, key string, fn func(ctx context.Context, lock *Lock) error, opts ...AcquireOption) error {
	if fn == nil {
		return &markedError{c.env.Errorf("do", Key{Partition: key}, "the function is nil"), ErrNotRun}
	}
	lock, err := c.Acquire(ctx, key, opts...)
	if err != nil {
		return &markedError{err, ErrNotRun}
	}
	return lock.Do(ctx, fn)
}

// searched calls the function "search", and emits the events of its result. Close waits until
// searched returns. If Close was called before, searched does not call "search", but returns an
// error that names the key "first".
func (c *Client) searched(ctx context.Context, first Key, search func() (acquire.Result, error)) ([]*Lock, error) {
	if !c.env.Enter() {
		return nil, c.env.AfterClose("acquire", first)
	}
	defer c.env.Leave()
	c.waiting.Add(1)
	defer c.waiting.Add(-1)
	began := c.env.Now()
	found, err := search()
	if err != nil {
		return nil, c.gaveUp(ctx, found, began, err)
	}
	return c.granted(ctx, found, began)
}

// wanted returns the request as an acquire.Want. The Want's function Hold makes a Lock from a
// grant.
func (r *request) wanted(c *Client) *acquire.Want {
	r.Hold = func(ctx context.Context, g acquire.Grant) acquire.Holding {
		return c.holds.Hold(ctx, &r.Want, g, &newLock(c, r).h)
	}
	return &r.Want
}

// granted emits an event for each lock that a search has acquired, and returns the locks. It
// releases the locks if OnEvent panics, or if the client is closing, because Close may miss locks
// that are granted after it has begun.
func (c *Client) granted(ctx context.Context, found acquire.Result, began decide.Instant) ([]*Lock, error) {
	received := false
	defer func() {
		if !received {
			c.env.Detach(func() { c.holds.GiveBack(found.Held) })
		}
	}()
	locks := make([]*Lock, len(found.Held))
	for i, held := range found.Held {
		locks[i] = lockOf(held.(*hold.Lock).First())
	}
	if c.env.IsClosing() {
		return nil, c.env.AfterClose("acquire", locks[0].Key())
	}
	requests, took := found.Requests, c.env.Now().Mono-began.Mono
	for _, l := range locks {
		c.emit(ctx, Event{Kind: EventGranted, Key: l.Key(), Token: l.Token(), Took: took,
			Requests: requests, TookOver: l.h.Lock().Dead() != nil, Local: found.Local})
		requests = 0 // only the event of the first lock has the number of requests that the call sent
	}
	received = true
	return locks, nil
}

// gaveUp emits the event of a search that ended without a grant, and returns the search's
// error. It emits no event if the call used NoWait and found the key held.
func (c *Client) gaveUp(ctx context.Context, found acquire.Result, began decide.Instant, err error) error {
	if err == ErrClosed { //nolint:errorlint // an error that only wraps ErrClosed names the key already
		err = c.env.AfterClose("acquire", found.At)
	}
	held := (*HeldError)(nil)
	if errors.As(err, &held) && held.Err == nil {
		return err
	}
	kind := EventGaveUp
	if errors.Is(err, ErrDone) {
		kind = EventDone
	}
	c.emit(ctx, Event{Kind: kind, Key: found.At, Took: c.env.Now().Mono - began.Mono, Requests: found.Requests, Err: err})
	return err
}

// AcquireAny acquires the first of keys that is free, in the order given. While no key is free, one
// request reads up to 100 keys. Options apply to every key. With NoWait it takes over the first key
// whose holder is found dead, or returns a *HeldError of the first held key. If ctx belongs to a
// key's lock, that key is left out or, with Reentrant, its grant is shared. ErrDeadlock is returned
// if no key is left, or if each wait could deadlock.
func (c *Client) AcquireAny(ctx context.Context, keys []Key, opts ...AcquireOption) (*Lock, error) {
	wants, err := c.newRequests(ctx, keys, opts)
	if err != nil {
		return nil, err
	}
	var sought []*acquire.Want
	var deadlock error
	neverFree := true
	for _, want := range wants {
		h, err := c.within(ctx, want)
		switch {
		case h == nil:
			sought = append(sought, want.wanted(c))
			neverFree = neverFree && err != nil
		case err == nil:
			return c.share(ctx, h, want)
		}
		deadlock = attempts.Joined(deadlock, err)
	}
	if neverFree {
		return nil, deadlock
	}
	locks, err := c.searched(ctx, wants[0].Key, func() (acquire.Result, error) { return c.acquirer.First(ctx, sought) })
	if err != nil {
		return nil, err
	}
	return locks[0], nil
}

// AcquireAll acquires all keys or none. Calls with the same keys in another order do not deadlock.
// Options apply to every key, but WithSortKey only to keys without a sort key. A key given twice
// counts once.
//
// It acquires one key after the other in sorted order, and renews the locks that it has while it
// waits for the next key. If it loses a lock, it releases all and begins again. With NoWait the
// error is a *HeldError of the first key, in sorted order, with a live holder. On an error,
// AcquireAll first releases the keys that it has acquired, within Config.ReleaseGrace.
//
// ErrDeadlock is returned in two cases: without Reentrant, if ctx belongs to a lock of one of keys;
// without NoWait, if ctx belongs to a Group with a key that sorts above one of keys. Acquire the
// Group's keys in the same call.
func (c *Client) AcquireAll(ctx context.Context, keys []Key, opts ...AcquireOption) (*Group, error) {
	wants, err := c.newRequests(ctx, keys, opts)
	if err != nil {
		return nil, err
	}
	shared := map[Key]*hold.Lock{}
	var wanted []*acquire.Want
	for _, want := range wants {
		want.InOrder = true
		h, err := c.within(ctx, want)
		switch {
		case err != nil:
			return nil, err
		case h != nil:
			shared[want.Key] = h
		default:
			wanted = append(wanted, want.wanted(c))
		}
	}
	slices.SortFunc(wanted, func(a, b *acquire.Want) int { return a.Key.Compare(b.Key) })
	granted := map[Key]*Lock{}
	if len(wanted) > 0 {
		all, err := c.searched(ctx, wants[0].Key, func() (acquire.Result, error) { return c.acquirer.All(ctx, wanted) })
		if err != nil {
			return nil, err
		}
		for _, l := range all {
			granted[l.Key()] = l
		}
	}
	var locks []*Lock
	var gone error
	for _, want := range wants {
		l := granted[want.Key]
		if l == nil {
			if l, err = c.share(ctx, shared[want.Key], want); err != nil {
				gone = err
				continue
			}
		}
		locks = append(locks, l)
	}
	switch {
	case gone == nil:
		return newGroup(ctx, locks), nil
	case len(locks) > 0:
		_ = newGroup(ctx, locks).Release(ctx) // errors of these releases are reported as events
	}
	return nil, gone
}

// The method "within" returns the grant to share, or nil if ctx belongs to no lock of the key.
// Without NoWait, it returns ErrDeadlock if ctx belongs to a Group with a key that sorts above the
// wanted key. Otherwise a deadlock is possible: the wanted key's holder may be waiting for the
// Group's key.
func (c *Client) within(ctx context.Context, want *request) (*hold.Lock, error) {
	if h := c.holds.Of(ctx, want.Key); h != nil {
		return h, want.refuses(c, h)
	}
	if want.NoWait {
		return nil, nil
	}
	if h := c.holds.Above(ctx, want.Key); h != nil {
		outOfOrder := c.env.Errorf("acquire", want.Key,
			"this context holds %v, which AcquireAll takes after it: acquire both in one AcquireAll, or with NoWait", h.Key())
		return nil, &markedError{outOfOrder, ErrDeadlock}
	}
	return nil, nil
}

// refuses returns the reason why a request may not share the grant h of its context, or nil if it
// may. Sharing sends nothing to DynamoDB, so the grant must already have everything that the
// request's options ask for.
func (r *request) refuses(c *Client, h *hold.Lock) error {
	var differs string
	switch lease := h.Lease().Duration(); {
	case !r.reentrant:
		return fmt.Errorf("%w: %v in table %s: use Reentrant to share the grant", ErrDeadlock, r.Key, c.cfg.Table)
	case r.lease != 0 && r.lease != lease:
		differs = fmt.Sprintf("its lease is %v, not %v: change it with Renew", lease, r.lease)
	case r.deleteGiven && r.Delete != h.Want().Delete:
		differs = "its release policy is settled: give it in the first call, or in Release"
	case !r.Once.None() && r.Once != h.Want().Once:
		differs = "it was not acquired for that work, which is to be done once: release it first"
	case !r.Changes.In(h.Record()):
		differs = "its record has other data or attributes: store them with Renew"
	default:
		return nil
	}
	return c.env.Errorf("acquire", r.Key, "Reentrant shares the grant as it is, and %s", differs)
}

// share returns another Lock for the same grant, with its own expiry warnings.
func (c *Client) share(ctx context.Context, h *hold.Lock, want *request) (*Lock, error) {
	l := newLock(c, want)
	if err := h.Share(ctx, &l.h); err != nil {
		return nil, err
	}
	return l, nil
}
