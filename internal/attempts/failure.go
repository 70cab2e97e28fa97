package attempts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
)

// Failure is a request that was not answered with success, nor with a failed
// condition. It can be repeated unless it was refused.
//
//nolint:errname // a failure says what to do next; most are not the end
type Failure struct {
	Cause  decide.Cause
	Outage bool // DynamoDB itself says that it cannot
	Err    error
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// FailureOf returns the failure of a request that err is. Nil: err is something
// that no repetition cures, such as a record that does not read.
func FailureOf(err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	return nil
}

// Failure classifies the error of a request; nil for nil.
func (s *Sender) Failure(ctx context.Context, err error) error {
	if err == nil {
		s.answered.Store(true)
		return nil
	}
	if f := FailureOf(err); f != nil {
		return f
	}
	t := decide.ClassifyTransaction(err)
	f := &Failure{Cause: t.Cause, Outage: decide.Classify(err).Outage}
	f.Cause, f.Err = s.CauseOf(t.Cause, err)
	s.failed(ctx, f.Cause, f.Err)
	return f
}

// UnsignedError is that of a request that was not sent, since there were no
// credentials at the time, though there had been before.
type UnsignedError struct{ Err error }

func (e *UnsignedError) Error() string {
	return fmt.Sprintf("nothing was sent: credentials are missing, which had been there before: see to what provides them: %v", e.Err)
}

func (e *UnsignedError) Unwrap() error { return e.Err }

// Pauses are the pauses between the repetitions of what fails: random, under a
// ceiling that doubles. The zero Pauses end at a second.
type Pauses struct {
	Least time.Duration // added to each
	Most  time.Duration // of the random part; 0: a second
	n     int
}

// Reset begins anew: something has succeeded.
func (p *Pauses) Reset() { p.n = 0 }

// Pause waits before the next repetition, and reports whether ctx still lasts.
func (s *Sender) Pause(ctx context.Context, p *Pauses) bool {
	Wait(ctx, s.NextPause(p))
	return ctx.Err() == nil
}

// NextPause is the pause before the next repetition.
func (s *Sender) NextPause(p *Pauses) time.Duration {
	most := p.Most
	if most == 0 {
		most = time.Second
	}
	p.n++
	return p.Least + decide.Backoff(p.n-1, 50*time.Millisecond, most, s.Chance())
}

// Wait waits for d, or until ctx ends.
func Wait(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// Repeat calls do until it succeeds, fails with what no repetition cures, is
// refused, or ctx ends, and returns its last error. failed hears of each failure
// that is to be repeated; its error ends the repetition.
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
