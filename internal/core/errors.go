package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Errors of a lock that has ended.
var (
	ErrLost     = errors.New("leasehold: lock lost")
	ErrReleased = errors.New("leasehold: lock released")
	ErrClosed   = attempts.ErrClosed

	// ErrDetached is the error of a lock's handle after Detach. It matches ErrReleased: after
	// Detach, as after a release, the caller must not use the handle.
	ErrDetached error = &retold{"leasehold: lock detached", []error{ErrReleased}}
)

// retold is an error that wraps the errors in the field "is", but has its own text.
type retold struct {
	text string
	is   []error
}

func (e *retold) Error() string { return e.text }

func (e *retold) Unwrap() []error { return e.is }

// Loss describes how a lock was lost. [Env.Lost] returns an error that contains it.
type Loss struct {
	Key    protocol.Key
	Token  int64
	Reason Reason
	At     time.Time        // time when the client stopped trusting the lock, by its wall clock
	By     *protocol.Record // record that the client has read, and that no longer shows the grant; nil if the client has read no such record
	Err    error            // error of the last renewal or transaction; nil if it did not fail
}

// lossError is the internal error of a lost lock. It wraps the public error, a *LostError,
// and has the same text.
type lossError struct {
	Loss
	error
}

func (e *lossError) Unwrap() error { return e.error }

// Lost returns the internal error of a lost lock. LossOf returns the Loss that this error
// contains.
func (e *Env) Lost(l Loss) error { return &lossError{l, e.Errors.Lost(l)} }

// Public returns the public error, a *LostError, if err is an internal error from Env.Lost.
// It returns any other error unchanged.
func Public(err error) error {
	// Do not use errors.As: an error that wraps a lossError must be returned unchanged.
	if lost, ok := err.(*lossError); ok {
		return lost.error
	}
	return err
}

// LossOf returns the Loss that an error from [Env.Lost] contains. It returns false for any
// other error.
func LossOf(err error) (Loss, bool) {
	lost := (*lossError)(nil)
	if !errors.As(err, &lost) {
		return Loss{}, false
	}
	return lost.Loss, true
}

// Reason is the reason why a lock was lost.
type Reason string

// Values of Reason. The reasons of the root package have the same values.
const (
	Expired  Reason = "expired"
	Paused   Reason = "paused"
	Replaced Reason = "replaced"
	Broken   Reason = "broken"
)

// Seen sets l.By to r, a record that no longer shows the lost grant. It sets the reason to Replaced
// if another grant has replaced the lost one. The parameter "ours" contains the ids of the lost
// grant and of its own hand-overs.
func (l *Loss) Seen(r protocol.Record, ours ...string) {
	l.By = &r
	if !r.Released || r.Grant != "" && !slices.Contains(ours, r.Grant) {
		l.Reason = Replaced
	}
}

// SeenGone reports whether the client has read a record that no longer showed the grant. The reason
// Replaced does not suffice: if By is nil, a renewal was applied, but its record is damaged.
func (l Loss) SeenGone() bool { return l.Reason == Broken || l.Reason == Replaced && l.By != nil }

// Errorf returns the error of the call op, which the client refuses before it sends a request.
func (e *Env) Errorf(op string, key protocol.Key, format string, args ...any) error {
	return fmt.Errorf("leasehold: %s %v in table %s: "+format, append([]any{op, key, e.Table}, args...)...)
}

// UnknownOutcome returns the error of an operation op that ended, because of err, before the
// outcome of a write was known. Even if err matches ErrLost, the result does not: ErrLost would
// mean that op has written nothing.
func (e *Env) UnknownOutcome(op string, key protocol.Key, err error) error {
	return e.Errors.Failed(op, key, fmt.Errorf("%w: %w", attempts.ErrUnknownOutcome, withoutLoss(err)))
}

// Outlive calls the function "write" on another goroutine, and returns the error of that function.
// If limit is cancelled while the outcome of the write is unknown, Outlive immediately returns the
// error of UnknownOutcome, and the function continues. See attempts.Outlive for details.
func (e *Env) Outlive(limit context.Context, op string, key protocol.Key, sent attempts.Sent, write func() error) error {
	var err error
	if _, unknown := attempts.Outlive(limit, e.Detach, sent, func() { err = write() }); unknown != nil {
		return e.UnknownOutcome(op, key, unknown)
	}
	return err
}

// withoutLoss returns an error that has the text of err, but does not match ErrLost.
func withoutLoss(err error) error {
	if !errors.Is(err, ErrLost) {
		return err
	}
	rest := &retold{text: err.Error()}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, part := range joined.Unwrap() {
			rest.is = append(rest.is, withoutLoss(part))
		}
	}
	return rest
}

// AfterClose returns the error of the call op on a closed client.
func (e *Env) AfterClose(op string, key protocol.Key) error {
	return fmt.Errorf("%w: %s %v in table %s", ErrClosed, op, key, e.Table)
}

// Naming returns err with the key of the lock added to its text, if err is ErrReleased,
// ErrDetached or ErrClosed. It returns any other error unchanged.
func (e *Env) Naming(key protocol.Key, err error) error {
	if err == ErrReleased || err == ErrDetached || err == ErrClosed { //nolint:errorlint // an error that wraps one of these already names the key
		return fmt.Errorf("%w: %v in table %s", err, key, e.Table)
	}
	return err
}
