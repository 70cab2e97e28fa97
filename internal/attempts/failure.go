package attempts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
)

// Failure is the error of a request that failed for any reason other than the condition of a write.
// A client may retry unless Cause is Refused.
//
//nolint:errname // a Failure tells the caller how to continue; most do not end the operation
type Failure struct {
	Cause decide.Cause
	Err   error
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// FailureOf returns the Failure that err wraps. It returns nil if err wraps no Failure, for
// example if err means that a record cannot be decoded. After such an error, a retry does not
// help.
func FailureOf(err error) *Failure {
	var f *Failure
	errors.As(err, &f) // leaves f nil if err wraps no Failure
	return f
}

// After returns f. But if f is a denial that may be temporary, After returns a Failure with the
// cause Unreachable, so that a waiter retries. A denial may be temporary if the parameter
// "answered" is true: DynamoDB has answered an earlier request of the same wait. A nil f is
// allowed.
func (f *Failure) After(answered bool) *Failure {
	if answered && f != nil && f.Cause == decide.Refused && decide.Denied(f.Err) {
		return &Failure{Cause: decide.Unreachable, Err: f.Err}
	}
	return f
}

// classify returns err, the error of a request, as a *Failure. It returns nil if err is
// nil.
func (s *Sender) classify(ctx context.Context, err error) error {
	s.noteRegion(ctx)
	if err == nil {
		s.accepted.Store(true)
		return nil
	}
	if f := FailureOf(err); f != nil {
		return f
	}
	cause, err := s.causeOf(decide.ReadCause(err), err)
	s.failed(ctx, cause, err)
	return &Failure{Cause: cause, Err: err}
}

// UnsignedError is the error of a request that the SDK did not send because it had no credentials,
// although DynamoDB had accepted an earlier request of the client.
type UnsignedError struct{ Err error }

func (e *UnsignedError) Error() string {
	return fmt.Sprintf("nothing was sent: credentials that existed before are missing: check the credential provider: %v", e.Err)
}

func (e *UnsignedError) Unwrap() error { return e.Err }

// Pauses determines the pauses between retries of a request. Each pause is Least plus a random
// time. The upper limit of the random time doubles with each pause, up to Most. The zero
// Pauses is ready for use.
type Pauses struct {
	Least time.Duration // shortest pause
	Most  time.Duration // longest random time; zero means one second
	n     int
}

// Reset undoes the growth of the pauses. Call it after a request has succeeded.
func (p *Pauses) Reset() { p.n = 0 }

// Pause sleeps until the next retry is due, or until ctx ends. It returns false if ctx has ended.
func (s *Sender) Pause(ctx context.Context, p *Pauses) bool {
	return Wait(ctx, s.NextPause(p))
}

// NextPause returns the pause before the next retry, and counts this pause in p.
func (s *Sender) NextPause(p *Pauses) time.Duration {
	p.n++
	return durations.Sum(p.Least, decide.Backoff(p.n-1, cmp.Or(p.Most, time.Second), s.Chance()))
}

// Wait waits for d, or until ctx ends. It returns false if ctx has ended.
func Wait(ctx context.Context, d time.Duration) bool {
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

// Repeat calls send until it succeeds, until ctx ends, or until a retry cannot help: send has
// returned a Failure with the cause Refused, or an error that is not a Failure. It returns the last
// error of send. Repeat calls beforeRetry before each retry. If beforeRetry returns an error,
// Repeat returns that error.
func (s *Sender) Repeat(ctx context.Context, send func() error, beforeRetry func(*Failure) error) error {
	var pauses Pauses
	for {
		err := send()
		f := FailureOf(err)
		if f == nil || f.Cause == decide.Refused || ctx.Err() != nil {
			return err
		}
		if err := beforeRetry(f); err != nil {
			return err
		}
		if !s.Pause(ctx, &pauses) {
			return err
		}
	}
}

// tries is the largest number of times that Patiently sends a request.
const tries = 3

// Patiently is for requests that are sent without a Sender. It calls send up to three times, with
// pauses, if the request is throttled or has no answer. It returns the last error. The function
// send must turn off the SDK's retries, as Once does.
func Patiently(ctx context.Context, send func(context.Context) error) error {
	for n := 1; ; n++ {
		within, cancel := context.WithTimeout(ctx, Limit)
		err := send(within)
		cancel()
		cause := decide.Classify(err).Cause
		if cause != decide.Unreachable && cause != decide.Busy || n == tries || !Wait(ctx, durations.Times(100*time.Millisecond, int64(n))) {
			return err
		}
	}
}

// ErrClosed is the cause with which a client cancels its contexts when it is closed.
var ErrClosed = errors.New("leasehold: client closed")

// Cause returns an error that says why ctx has ended, with the text of context.Cause(ctx). It
// returns nil if ctx has not ended. The error matches context.Cause(ctx) and ctx.Err(). If the
// cause is ErrClosed, the error matches only ErrClosed: the client itself has cancelled ctx.
func Cause(ctx context.Context) error {
	cause := context.Cause(ctx)
	if cause == nil || errors.Is(cause, ErrClosed) || errors.Is(cause, context.DeadlineExceeded) || errors.Is(cause, context.Canceled) {
		return cause
	}
	return &endedError{cause, ctx.Err()}
}

// endedError contains the cause with which a context has ended, and the kind of the end:
// context.Canceled or context.DeadlineExceeded.
type endedError struct{ cause, kind error }

func (e *endedError) Error() string { return e.cause.Error() }

func (e *endedError) Unwrap() []error { return []error{e.cause, e.kind} }

// Joined returns the result of errors.Join for the errors that are not nil. If exactly one
// error is not nil, Joined returns that error itself.
func Joined(errs ...error) error {
	errs = slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil })
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}
