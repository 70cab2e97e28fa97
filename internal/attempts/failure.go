package attempts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
)

// Failure is the error of a request that failed for any reason other than its condition.
// The request can be retried unless it was refused. A wait also retries some refusals: see
// After.
//
//nolint:errname // a Failure tells the caller how to continue; most do not end the operation
type Failure struct {
	Cause decide.Cause
	Err   error
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// FailureOf returns the Failure that err wraps. It returns nil if err wraps none, as for a
// record that cannot be decoded. A retry does not help in that case.
func FailureOf(err error) *Failure {
	var f *Failure
	errors.As(err, &f) // leaves f nil if err wraps no Failure
	return f
}

// After returns the failure that a wait acts on. answered reports whether DynamoDB has
// answered an earlier request of the same wait. In that case a denial may be temporary, so
// After returns a failure that can be retried. After returns nil for a nil Failure.
func (f *Failure) After(answered bool) *Failure {
	if answered && f != nil && f.Cause == decide.Refused && decide.Denied(f.Err) {
		return &Failure{Cause: decide.Unreachable, Err: f.Err}
	}
	return f
}

// classify returns the error of a request as a *Failure, or nil if err is nil.
func (s *Sender) classify(ctx context.Context, err error) error {
	s.noteRegion(ctx)
	if err == nil {
		s.accepted.Store(true)
		return nil
	}
	if f := FailureOf(err); f != nil {
		return f
	}
	cause, err := s.CauseOf(decide.ClassifyTransaction(err).Cause, err)
	s.failed(ctx, cause, err)
	return &Failure{Cause: cause, Err: err}
}

// UnsignedError is the error of a request that was not sent because there were no
// credentials, though earlier requests had some.
type UnsignedError struct{ Err error }

func (e *UnsignedError) Error() string {
	return fmt.Sprintf("nothing was sent: credentials that existed before are missing: check the credential provider: %v", e.Err)
}

func (e *UnsignedError) Unwrap() error { return e.Err }

// Pauses are the random pauses between retries. Their upper bound doubles each time, up to
// Most. The zero Pauses is ready for use.
type Pauses struct {
	Least time.Duration // shortest pause; a random part is added to it
	Most  time.Duration // longest random part; zero means one second
	n     int
}

// Reset makes the next pauses short again. Call it after a success.
func (p *Pauses) Reset() { p.n = 0 }

// Pause waits before the next retry. It returns false if ctx ended.
func (s *Sender) Pause(ctx context.Context, p *Pauses) bool {
	return Wait(ctx, s.NextPause(p))
}

// NextPause returns the pause before the next retry.
func (s *Sender) NextPause(p *Pauses) time.Duration {
	most := p.Most
	if most == 0 {
		most = time.Second
	}
	p.n++
	return durations.Sum(p.Least, decide.Backoff(p.n-1, 50*time.Millisecond, most, s.Chance()))
}

// Wait waits for d, or until ctx ends. It reports whether ctx has not ended.
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

// Repeat calls do until it succeeds, is refused, returns an error that is not a Failure, or
// ctx ends. It returns the last error. failed is called before each retry. If failed
// returns an error, there are no more retries.
func (s *Sender) Repeat(ctx context.Context, do func() error, failed func(*Failure) error) error {
	var pauses Pauses
	for {
		err := do()
		f := FailureOf(err)
		if f == nil || f.Cause == decide.Refused || ctx.Err() != nil {
			return err
		}
		if err := failed(f); err != nil {
			return err
		}
		if !s.Pause(ctx, &pauses) {
			return err
		}
	}
}

// tries is how many times Patiently sends a request.
const tries = 3

// Patiently sends a request until it is answered, up to tries times, as a single lost
// packet or throttled request proves little. It is for requests that are not sent by a
// Sender. Each try may go to another Region. send must turn off the SDK's retries, as Once
// does.
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

// ErrClosed is the cause with which the contexts of a client end when the client closes.
var ErrClosed = errors.New("leasehold: client closed")

// Cause returns the cause with which ctx has ended, or nil if it has not ended. The text of
// the error is only the text of the cause. The error also matches context.DeadlineExceeded
// or context.Canceled, depending on how ctx ended. If the cause is ErrClosed, the error
// matches neither, as the caller did not end ctx.
func Cause(ctx context.Context) error {
	cause := context.Cause(ctx)
	if cause == nil || errors.Is(cause, ErrClosed) || errors.Is(cause, context.DeadlineExceeded) || errors.Is(cause, context.Canceled) {
		return cause
	}
	return &endedError{cause, ctx.Err()}
}

// endedError is the cause with which a context has ended, and its kind: context.Canceled or
// context.DeadlineExceeded.
type endedError struct{ cause, kind error }

func (e *endedError) Error() string { return e.cause.Error() }

func (e *endedError) Unwrap() []error { return []error{e.cause, e.kind} }

// Joined returns the joined errors like errors.Join, but returns a single error as it is.
func Joined(errs ...error) error {
	errs = slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil })
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}
