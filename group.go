package leasehold

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Group is several locks held under one context, from Client.AcquireAll. Its
// methods are safe for concurrent use. The zero Group is of no use.
type Group struct {
	c     *Client
	locks []*Lock // in order of first mention
	ctx   *lockContext
}

func newGroup(ctx context.Context, c *Client, locks []*Lock) *Group {
	g := &Group{c: c, locks: locks}
	g.ctx, _ = g.bind(context.WithoutCancel(ctx))
	return g
}

// bind returns a copy of ctx that ends with the first of the locks too, and
// belongs to all of them.
func (g *Group) bind(ctx context.Context) (*lockContext, context.CancelFunc) {
	inner, cancel := context.WithCancelCause(ctx)
	held := heldKeysOf(ctx)
	stops := make([]func() bool, len(g.locks))
	for i, l := range g.locks {
		held = &heldKeys{by: l.h, bound: ctx, outer: held}
		stops[i] = context.AfterFunc(l.ctx, func() { cancel(context.Cause(l.ctx)) })
	}
	look := func() {
		for _, l := range g.locks {
			if l.ctx.Err() != nil {
				cancel(context.Cause(l.ctx))
				return
			}
		}
	}
	return &lockContext{Context: inner, held: held, look: look}, func() {
		for _, stop := range stops {
			stop()
		}
		cancel(context.Canceled)
	}
}

// Locks returns the locks in the order in which their keys were first given.
func (g *Group) Locks() []*Lock { return slices.Clone(g.locks) }

// Context ends when the first of the locks does, with its cause. Otherwise it
// is as Lock.Context.
func (g *Group) Context() context.Context { return g.ctx }

// Err is the first error of the locks, nil while all are trusted.
func (g *Group) Err() error {
	if g.ctx.Err() == nil {
		return nil
	}
	return context.Cause(g.ctx)
}

// Bind returns a copy of ctx that ends with the first of the locks too. Call
// cancel when the work is done.
func (g *Group) Bind(ctx context.Context) (_ context.Context, cancel context.CancelFunc) {
	return g.bind(ctx)
}

// Guards returns all that the grants rest on: a guard for each lock, in the order
// of Locks, and under Config.SharedLease one last check that the shared lease
// stands, which Lock.GuardError of any of the locks knows. They fail once a
// grant has ended, for a transaction you build. They survive renewals.
func (g *Group) Guards() []types.TransactWriteItem {
	holds := make([]*holding, len(g.locks))
	for i, l := range g.locks {
		holds[i] = l.h
	}
	return guardsOf(guarded(holds))
}

// Do calls fn with Bind(ctx), and releases all locks when fn returns, panics or
// exits. Nil means: fn returned nil and every lock was ours until then. What
// Lock.Do says of errors holds here as well.
func (g *Group) Do(ctx context.Context, fn func(ctx context.Context, group *Group) error) (err error) {
	for i, l := range g.locks {
		if err := l.begin(); err != nil {
			for _, begun := range g.locks[:i] {
				begun.done()
			}
			_ = g.Release(ctx) // reported as events; the others are still held
			return &notRunError{err}
		}
	}
	returned := false
	defer func() {
		within := ctx
		if !returned { // a panic is not held up for longer than the release may take
			within = endedContext()
		}
		var lost error
		for _, l := range g.locks {
			lost = errors.Join(lost, l.lostCause())
			l.done()
		}
		if released := g.Release(within); lost == nil && errors.Is(released, ErrLost) {
			lost = released
		}
		if lost != nil && !errors.Is(err, ErrLost) {
			err = errors.Join(err, lost)
		}
	}()
	bound, cancel := g.Bind(ctx)
	defer cancel()
	err = fn(bound, g)
	returned = true
	return err
}

// Release frees all keys, in one transaction for up to 100; where that is
// refused or has no answer, one by one and in parallel. It joins the errors, in
// the order of Locks, each as of Lock.Release, and like that may be called
// again. Options apply to every lock.
func (g *Group) Release(ctx context.Context, opts ...ReleaseOption) error {
	ps, err := g.partings(opts)
	if err != nil {
		return err
	}
	for i, l := range g.locks {
		if l.leaveToOthers() {
			ps[i] = nil
		}
	}
	ps = slices.DeleteFunc(ps, func(p *parting) bool { return p == nil })
	return errors.Join(g.c.releaseAll(ctx, ps)...)
}

// partings turns the options of a release into what becomes of each record.
func (g *Group) partings(opts []ReleaseOption) ([]*parting, error) {
	ps := make([]*parting, len(g.locks))
	for i, l := range g.locks {
		e, err := g.c.newEnding(l.h, opts)
		if err != nil {
			return nil, err
		}
		ps[i] = &parting{h: l.h, e: e}
	}
	return ps, nil
}
