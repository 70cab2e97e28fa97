package election

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attempts"
)

// Lead campaigns and calls fn for each term won. When a term is lost, fn's
// context ends; once fn has returned, Lead campaigns again, whatever fn
// returned. It returns when fn returns while still leading (fn's error,
// resigned) or when ctx ends (its cause, which matches ctx.Err() too, joined with
// fn's error if that is another).
//
// Somebody may ask this leader to step down (StepDown). Then fn's context ends with
// ErrAsked while the term goes on, for fn to end its work under it: what is left goes
// by term.Context. Once fn has returned, whatever it returned, Lead gives the term up,
// lets every other candidate look, and campaigns again.
//
// fn's context is ctx bound to the term: it ends with either. When ctx ends or
// the client is closed (leasehold.ErrClosed) fn is waited for, and then the
// term is given up. Nobody else is elected while fn runs on under a term that
// is renewed; a fn that ignores the end of a lost term works beside the next
// leader, and only what is fenced by the term is safe from it. In this Election
// no second fn begins before the first has returned.
//
// If fn panics or exits its goroutine the term is given up first. Errors of
// Campaign that waiting does not cure are returned. A denial of access is one only until
// this Election has won a term: later it may pass, and Lead goes on campaigning.
func (e *Election) Lead(ctx context.Context, value string, fn func(ctx context.Context, term *leasehold.Lock) error) error {
	if fn == nil {
		return fmt.Errorf("election: lead %s: the function is nil", e.key)
	}
	for {
		term, err := e.Campaign(ctx, value)
		if err != nil {
			if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
				return attempts.Cause(ctx)
			}
			return err
		}
		if again, err := e.serve(ctx, term, fn); !again {
			return err
		}
	}
}

// serve calls fn under a term. again: the term was lost before fn had returned, or was given
// up as somebody had asked for it.
func (e *Election) serve(ctx context.Context, term *leasehold.Lock, fn func(context.Context, *leasehold.Lock) error) (again bool, err error) {
	var called error       // what fn returned
	var asked, ended error // why ctx and the term had ended by then
	looked := false
	look := func() { asked, ended, looked = context.Cause(ctx), term.Err(), true }
	until, resign := context.WithCancelCause(ctx)
	defer resign(nil)
	_ = e.OnStepDown(term, func() { resign(ErrAsked) }) // which accepts each term of Campaign
	err = term.Do(until, func(bound context.Context, term *leasehold.Lock) error {
		defer look()
		select {
		case e.place <- struct{}{}:
			defer func() { <-e.place }()
		case <-bound.Done():
		}
		if bound.Err() == nil {
			called = fn(bound, term)
		}
		return called
	})
	if !looked { // it ended before it began
		look()
	}
	switch {
	case asked != nil:
		return false, besides(asked, attempts.Cause(ctx), called)
	case errors.Is(ended, leasehold.ErrLost):
		return true, nil
	case errors.Is(ended, leasehold.ErrClosed):
		return false, besides(leasehold.ErrClosed, leasehold.ErrClosed, called)
	case errors.Is(err, leasehold.ErrLost) && !errors.Is(called, leasehold.ErrLost):
		return true, nil // as its release has shown
	case errors.Is(context.Cause(until), ErrAsked):
		return true, nil
	}
	return false, called
}

// besides joins what fn returned to asked, which says why its context ended, unless fn
// returned that cause.
func besides(cause, asked, called error) error {
	if called == nil || errors.Is(called, cause) {
		return asked
	}
	return errors.Join(asked, called)
}
