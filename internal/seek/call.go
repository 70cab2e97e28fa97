package seek

import (
	"context"
	"errors"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Result is the outcome of a call.
type Result struct {
	Held     []Holding    // one, or one for each key in their order; empty if there is an error
	At       protocol.Key // the key that the error names
	Requests int          // the number sent before the call returned
	Local    bool         // another goroutine has handed the key over
}

// One seeks a key: first in the local queue, and then the key itself.
func (c *Client) One(ctx context.Context, want *Want) (Result, error) {
	began := c.Now()
	given, err := c.awaitTurn(ctx, want, began)
	if err != nil {
		return Result{At: want.Key}, err
	}
	if h := given.Granted; h != nil {
		return Result{Held: []Holding{h}, Local: true}, nil
	}
	return c.first(ctx, c.newOneWaiter(ctx, want, given.Delay, began))
}

// First seeks the first of the keys that is free.
func (c *Client) First(ctx context.Context, wants []*Want) (Result, error) {
	if len(wants) == 1 {
		return c.One(ctx, wants[0])
	}
	return c.first(ctx, c.newAnyWaiter(ctx, wants))
}

// first lets a task acquire one of its keys.
func (c *Client) first(ctx context.Context, w *anyWaiter) (Result, error) {
	c.Detach(w.run)
	if why := c.await(ctx, w.done); why != nil {
		at, holder := w.waitsFor()
		if w.giveUp() {
			c.cleanUp(at.want, w.done)
			if holder != nil {
				why = w.withDamaged(why)
			}
			return Result{At: at.want.Key}, c.ended(at.want, holder, why, at.lastErr.Load())
		}
	}
	<-w.done
	if w.err != nil {
		return Result{At: w.waiters[0].want.Key, Requests: w.requests}, w.err
	}
	return Result{Held: []Holding{w.granted}, Requests: w.requests}, nil
}

// All seeks all keys, which are in order, or none.
func (c *Client) All(ctx context.Context, wants []*Want) (Result, error) {
	if len(wants) == 1 {
		return c.One(ctx, wants[0])
	}
	w := newAllWaiter(ctx, c, wants)
	c.Detach(w.run)
	if why := c.await(ctx, w.done); why != nil {
		if held, ok := w.giveUp(); ok {
			given := make(chan struct{})
			c.Detach(func() { // at once, whatever request is under way
				defer close(given)
				c.keeper.GiveBack(held)
				<-w.done
			})
			c.AwaitGrace(given)
			at, holder := w.waitsFor()
			return Result{At: at.want.Key}, c.ended(at.want, holder, why, at.lastErr.Load())
		}
	}
	<-w.done
	if w.err != nil {
		return Result{At: w.at.Load().want.Key, Requests: w.requests}, w.err
	}
	return Result{Held: w.held, Requests: w.requests}, nil
}

// await waits until done, and returns what ended the wait before that.
func (c *Client) await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return attempts.Cause(ctx)
	case <-c.Closing().Done():
		return attempts.Cause(c.Closing())
	}
}

// cleanUp waits, no longer than the release grace, until a call has undone what it sent for
// keys that it was not granted. It waits only without renewal: there the process may be
// frozen as soon as the call returns. For longer it does not wait: a lease may run.
func (c *Client) cleanUp(want *Want, done <-chan struct{}) {
	if want.Manual {
		c.AwaitGrace(done)
	}
}

// ended returns the error of a wait that was ended from outside, by why. last is why the
// last request failed, nil if it did not.
func (c *Client) ended(want *Want, holder *protocol.Record, why error, last *error) error {
	switch {
	case holder != nil && last != nil: // it may have released the key since
		return c.Errors.Held(want.Key, *holder, errors.Join(why, c.Errors.Failed("acquire", want.Key, *last)))
	case holder != nil:
		return c.Errors.Held(want.Key, *holder, why)
	case last != nil:
		return c.Errors.Failed("acquire", want.Key, errors.Join(why, *last))
	}
	return c.Errors.Ended(want.Key, why)
}
