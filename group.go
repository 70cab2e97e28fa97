package leasehold

import (
	"context"
	"errors"
	"slices"

	"github.com/leasehold-go/leasehold/internal/acquire"
	"github.com/leasehold-go/leasehold/internal/hold"
)

// Group is several locks held under one context. Its methods are safe for concurrent use.
// The zero Group is not usable.
type Group struct {
	g     hold.Group
	locks []*Lock // locks in the order in which the caller first named their keys
}

func newGroup(ctx context.Context, locks []*Lock) *Group {
	handles := make([]*hold.Handle, len(locks))
	for i, l := range locks {
		handles[i] = &l.h
	}
	return &Group{g: hold.NewGroup(ctx, handles), locks: locks}
}

// group returns a Group that contains only this lock. The methods that Lock and Group have in
// common are implemented on Group.
func (l *Lock) group() *Group { return &Group{g: l.h.Group(), locks: []*Lock{l}} }

// Locks returns the locks in the order in which their keys were first given.
func (g *Group) Locks() []*Lock { return slices.Clone(g.locks) }

// Context returns a context that ends when any lock ends, with its cause.
func (g *Group) Context() context.Context { return g.g.Context() }

// Err returns the first error of the locks, or nil while all are trusted.
func (g *Group) Err() error { return g.g.Err() }

// Bind is Lock.Bind for all locks: the context ends when the first lock ends.
func (g *Group) Bind(ctx context.Context) (_ context.Context, cancel context.CancelFunc) {
	return g.g.Bind(ctx)
}

// Do is Lock.Do for all locks. If one lock has already ended, Do does not call fn and
// releases the other locks.
func (g *Group) Do(ctx context.Context, fn func(ctx context.Context, group *Group) error) (err error) {
	if err := g.beginWork(ctx); err != nil {
		return &markedError{err, ErrNotRun}
	}
	returned := false
	defer func() {
		within := ctx
		if !returned { // after a panic, Do waits at most Config.ReleaseGrace for the release, even if ctx has not ended
			within = hold.EndedContext()
		}
		if lost := g.endWork(within, returned && err == nil); lost != nil && !errors.Is(err, ErrLost) {
			err = errors.Join(err, lost)
		}
	}()
	bound, cancel := g.Bind(ctx)
	defer cancel()
	err = fn(bound, g)
	returned = true
	return err
}

// beginWork records, for every lock, that a function in Do is running under it. If one lock has
// ended, beginWork records nothing, and releases the other locks.
func (g *Group) beginWork(ctx context.Context) error {
	for i, l := range g.locks {
		if err := l.h.BeginWork(); err != nil {
			for _, begun := range g.locks[:i] {
				begun.h.EndWork()
			}
			if others := slices.Concat(g.locks[:i], g.locks[i+1:]); len(others) > 0 {
				_ = newGroup(ctx, others).Release(ctx) // errors of these releases are reported as events
			}
			return err
		}
	}
	return nil
}

// endWork undoes beginWork and releases the locks, with the mark of Once or Every if done is true.
// It returns an error if a lock was lost, or if the mark may be missing. Other release errors are
// only logged and reported as events.
func (g *Group) endWork(ctx context.Context, done bool) error {
	var lost []error
	for _, l := range g.locks {
		if cause := l.h.Lock().Ended(); errors.Is(cause, ErrLost) {
			lost = append(lost, cause)
		}
	}
	if done && len(lost) == 0 && g.isOnce() {
		defer g.locks[0].h.EndWork() // deferred, as Close could otherwise release the lock before the mark is stored
		if err := g.Release(ctx, MarkDone()); !errors.Is(err, hold.ErrShared) {
			return err
		}
		return nil
	}
	for _, l := range g.locks {
		l.h.EndWork()
	}
	if err := g.Release(ctx); len(lost) == 0 && errors.Is(err, ErrLost) {
		return err
	}
	return errors.Join(lost...)
}

// isOnce reports whether the group is a single lock that was acquired with Once or Every.
// It returns false for a group of several locks.
func (g *Group) isOnce() bool { return g.locks[0].h.Once }

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
