package election

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/bridge"
)

// Lead campaigns, and calls fn for each term that it wins. opts, such as
// leasehold.WithLease, apply to every campaign. With leasehold.NoWait, Lead returns ErrHeld
// instead of waiting for a live leader.
//
// When a term is lost, fn's context ends. Once fn has returned, with or without an error, Lead
// campaigns again. If fn returns while this process still leads, Lead resigns and returns fn's
// error. With leasehold.Once or leasehold.Every, it returns an error instead of nil if the done
// mark may not have been stored, as leasehold.Lock.Do does. Lead also returns when ctx ends, with
// an error that matches the cause of ctx and ctx.Err(). That error also includes fn's error unless
// fn returned the cause, or an error that wraps nothing else.
//
// Another client may ask this leader to step down (StepDown). Then fn's context ends with ErrAsked,
// but the term continues, so that fn can end its work while this process still leads. That work
// should use term.Context. Once fn has returned, Lead releases the term, pauses so that another
// candidate can be elected, and campaigns again. With leasehold.Once or leasehold.Every, Lead
// instead returns once fn has returned nil: the work is done.
//
// The context of fn is ctx bound to the term: it ends when ctx or the term ends. When ctx ends or
// the client is closed (leasehold.ErrClosed), Lead waits for fn and then releases the term. No
// other candidate is elected while fn runs under a term that is renewed. If fn keeps running after
// its term was lost, it runs beside the next leader. Its writes that are fenced by the term then
// fail, but its other writes may still be applied. This Election never calls fn again before the
// earlier call has returned. So a call of Lead with the context of fn or of the term returns
// leasehold.ErrDeadlock, even with leasehold.Reentrant.
//
// If fn panics or exits its goroutine, Lead releases the term before the panic or the exit
// continues. If Campaign fails for a reason that a later attempt cannot change, Lead returns the
// error. Denied access is such a reason until this Election has won its first term. Later, a denial
// may be temporary: Lead continues to campaign.
func (e *Election) Lead(ctx context.Context, value string, fn func(ctx context.Context, term *leasehold.Lock) error, opts ...leasehold.AcquireOption) error {
	if fn == nil {
		return fmt.Errorf("election: lead %s: the function is nil", e.key)
	}
	nested := ctx.Value(inside{e}) != nil
	ctx = context.WithValue(ctx, inside{e}, true)
	for {
		term, err := e.Campaign(ctx, value, opts...)
		if err != nil {
			if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
				return attempts.Cause(ctx)
			}
			return err
		}
		if nested && len(bridge.Grant(e.locks, term).Handles()) > 1 { // Lead would wait for the function that has called it
			_ = term.Release(ctx) // ends this handle alone, and sends nothing
			return fmt.Errorf("election: lead %s: its function calls Lead: %w", e.key, leasehold.ErrDeadlock)
		}
		if again, err := e.serve(ctx, term, fn); !again {
			return err
		}
	}
}

// inside is the key of a context value: the context belongs to the function, or the term, of a call
// of e.Lead.
type inside struct{ e *Election }

// serve calls fn for one term. It returns true if Lead must campaign again: the term was lost
// before fn returned, or a client asked the leader to step down.
func (e *Election) serve(ctx context.Context, term *leasehold.Lock, fn func(context.Context, *leasehold.Lock) error) (again bool, err error) {
	var called error       // error that fn has returned; nil if fn was not called
	var asked, ended error // when fn returned: the cause of ctx, and the error of the term; nil if ctx, or the term, had not ended
	look := sync.OnceFunc(func() { asked, ended = context.Cause(ctx), term.Err() })
	until, resign := context.WithCancelCause(ctx)
	defer resign(nil)
	grant := bridge.Grant(e.locks, term)
	_ = e.OnStepDown(term, func() { resign(ErrAsked) }) // cannot fail, because this Election's client was granted the term
	err = term.Do(until, func(bound context.Context, term *leasehold.Lock) error {
		defer look()
		if e.place.Lock(bound) {
			defer e.place.Unlock()
			if bound.Err() == nil {
				called = fn(bound, term)
				return called
			}
		}
		return context.Cause(bound) // after nil, Do would store the done mark of Once or Every
	})
	look() // term.Do has not called its function if ctx or the term had already ended
	switch {
	case asked != nil:
		return false, besides(asked, attempts.Cause(ctx), called)
	case errors.Is(ended, leasehold.ErrLost):
		return true, nil
	case errors.Is(ended, leasehold.ErrClosed):
		return false, besides(leasehold.ErrClosed, leasehold.ErrClosed, called)
	case errors.Is(err, leasehold.ErrLost) && !errors.Is(called, leasehold.ErrLost):
		return true, nil // the term was lost earlier, but only the reply to its release showed the loss
	case errors.Is(context.Cause(until), ErrAsked) && (called != nil || errors.Is(err, ErrAsked) || !grant.First().Once):
		return true, nil // but not after fn has done work of Once or Every: the next campaign would fail with leasehold.ErrDone
	}
	return false, err
}

// The function "besides" returns the error of Lead after Lead's context has ended or the client was
// closed. The error "asked" reports this end, and "called" is the error of fn. The result joins
// both errors. It is "asked" alone if "called" is nil, or if "called" reports only the cause of
// this end. An error that wraps several errors may report more, such as ErrUnknownOutcome of a commit.
func besides(cause, asked, called error) error {
	several := false
	for err := called; err != nil && !several; err = errors.Unwrap(err) {
		_, several = err.(interface{ Unwrap() []error })
	}
	if called == nil || errors.Is(called, cause) && !several {
		return asked
	}
	return errors.Join(asked, called)
}
