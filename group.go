package leasehold

import (
	"context"
	"errors"
	"slices"

	"github.com/leasehold-go/leasehold/internal/hold"
)

// Group is several locks held under one context, from Client.AcquireAll. Its
// methods are safe for concurrent use. The zero Group is of no use.
type Group struct {
	g     hold.Group
	locks []*Lock // in order of first mention
}

func newGroup(ctx context.Context, locks []*Lock) *Group {
	handles := make([]*hold.Handle, len(locks))
	for i, l := range locks {
		handles[i] = &l.h
	}
	return &Group{g: hold.NewGroup(ctx, handles), locks: locks}
}

// group is the group of this lock alone: what a Lock and a Group both do is
// written for a Group.
func (l *Lock) group() *Group { return &Group{g: l.h.Group(), locks: []*Lock{l}} }

// Locks returns the locks in the order in which their keys were first given.
func (g *Group) Locks() []*Lock { return slices.Clone(g.locks) }

// Context ends when the first of the locks does, with its cause. Otherwise it
// is as Lock.Context.
func (g *Group) Context() context.Context { return g.g.Context() }

// Err is the first error of the locks, nil while all are trusted.
func (g *Group) Err() error { return g.g.Err() }

// Bind returns a copy of ctx that ends with the first of the locks too. Call
// cancel when the work is done.
func (g *Group) Bind(ctx context.Context) (_ context.Context, cancel context.CancelFunc) {
	return g.g.Bind(ctx)
}

// Do calls fn with Bind(ctx), and releases all locks when fn returns, panics or
// exits. Nil means: fn returned nil and every lock was held until then. What
// Lock.Do says of errors holds here as well. If one of the locks has ended
// before, fn is not called and the others are released.
func (g *Group) Do(ctx context.Context, fn func(ctx context.Context, group *Group) error) (err error) {
	if err := g.beginWork(ctx); err != nil {
		return &notRunError{err}
	}
	returned := false
	defer func() {
		within := ctx
		if !returned { // a panic waits for the release, but not until ctx ends
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			within = ended
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

// beginWork counts a function in Do for every lock. If one has ended it counts
// none, and releases the others.
func (g *Group) beginWork(ctx context.Context) error {
	for i, l := range g.locks {
		if err := l.h.BeginWork(); err != nil {
			for _, begun := range g.locks[:i] {
				begun.h.EndWork()
			}
			if others := slices.Concat(g.locks[:i], g.locks[i+1:]); len(others) > 0 {
				_ = newGroup(ctx, others).Release(ctx) // reported as events
			}
			return err
		}
	}
	return nil
}

// endWork ends what beginWork began and releases the locks; done: with the mark, if they
// were acquired for work that is done once. It returns how locks were lost, or why the mark
// may not be stored. What was lost before fn returned is what counts: the release can only
// add that another client's grant was there already.
func (g *Group) endWork(ctx context.Context, done bool) error {
	var lost []error
	for _, l := range g.locks {
		if cause := l.h.Lock().Ended(); errors.Is(cause, ErrLost) {
			lost = append(lost, cause)
		}
	}
	if done && len(lost) == 0 && g.isOnce() {
		defer g.locks[0].h.EndWork() // Close would release it without the mark
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

// isOnce reports whether the group is of one lock that was acquired with Once or Every, as
// several never are.
func (g *Group) isOnce() bool { return g.locks[0].h.Once }
