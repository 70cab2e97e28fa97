package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Errors of a lock that has ended.
var (
	ErrLost     = errors.New("leasehold: lock lost")
	ErrReleased = errors.New("leasehold: lock released")
	ErrClosed   = attempts.ErrClosed

	// ErrDetached is the error of a handle that its caller has detached. It matches
	// ErrReleased, since a caller that has detached a handle has given it up, as after a
	// release.
	ErrDetached error = detachedError{}
)

type detachedError struct{}

func (detachedError) Error() string { return "leasehold: lock detached" }

func (detachedError) Is(target error) bool { return target == ErrReleased }

// Loss describes how a lock was lost. [Env.Lost] makes an error of it.
type Loss struct {
	Key    protocol.Key
	Token  int64
	Reason Reason
	At     time.Time        // time when trust in the lock ended, by the wall clock
	By     *protocol.Record // record that no longer showed the grant; nil if no such record was read
	Err    error            // error of the last renewal or transaction; nil if none failed
}

// lossError is the internal error of a loss. It wraps the public error and has the same
// text.
type lossError struct {
	Loss
	error
}

func (e *lossError) Unwrap() error { return e.error }

// Lost returns the error of a lock that was lost. LossOf gets the Loss back from it.
func (e *Env) Lost(l Loss) error { return &lossError{l, e.Errors.Lost(l)} }

// Public replaces the internal error of a loss by the public one, a *LostError. It returns
// other errors unchanged.
func Public(err error) error {
	if lost, ok := err.(*lossError); ok { // errors.As is not used, since an error that wraps the loss must be returned unchanged
		return lost.error
	}
	return err
}

// LossOf returns the Loss in an error of [Env.Lost]. It returns false for other errors.
func LossOf(err error) (Loss, bool) {
	lost := (*lossError)(nil)
	if !errors.As(err, &lost) {
		return Loss{}, false
	}
	return lost.Loss, true
}

// Reason is the reason why a lock was lost.
type Reason string

// Values of Reason. The root package has the same values.
const (
	Expired  Reason = "expired"
	Paused   Reason = "paused"
	Replaced Reason = "replaced"
	Broken   Reason = "broken"
)

// Seen records in l that r was read after the caller's grant had ended. ours contains the
// ids of the caller's grants. If r is held, or shows the released grant of another client,
// the reason for the loss is Replaced.
func (l *Loss) Seen(r protocol.Record, ours ...string) {
	l.By = &r
	if !r.Released || r.Grant != "" && !slices.Contains(ours, r.Grant) {
		l.Reason = Replaced
	}
}

// SeenGone reports whether the lock counts as lost because a record was read that no longer
// showed the grant.
func (l Loss) SeenGone() bool { return l.Reason == Replaced || l.Reason == Broken }

// Errorf returns the error of a call that was refused before any request. op is the name of
// the call, and key is its key.
func (e *Env) Errorf(op string, key protocol.Key, format string, args ...any) error {
	return fmt.Errorf("leasehold: %s %v in table %s: "+format, append([]any{op, key, e.Table}, args...)...)
}

// UnknownOutcome returns the error of an operation that gives up although one of its writes
// may have been applied, or may still be applied. The operation may have ended because a
// lock was lost. Even then the error does not match ErrLost, because ErrLost would mean
// that nothing was written.
func (e *Env) UnknownOutcome(op string, key protocol.Key, err error) error {
	return e.Errors.Failed(op, key, fmt.Errorf("%w: %w", attempts.ErrUnknownOutcome, withoutLoss(err)))
}

// Outlive runs write and returns its error. write continues after its caller has left: see
// attempts.Outlive. If limit ends while the outcome is unknown, Outlive returns the error
// of UnknownOutcome.
func (e *Env) Outlive(limit context.Context, op string, key protocol.Key, sent attempts.Sent, write func() error) error {
	var err error
	if _, unknown := attempts.Outlive(limit, e.Detach, sent, func() { err = write() }); unknown != nil {
		return e.UnknownOutcome(op, key, unknown)
	}
	return err
}

// withoutLoss returns an error that reads like err but does not match ErrLost.
func withoutLoss(err error) error {
	if !errors.Is(err, ErrLost) {
		return err
	}
	rest := &lossless{text: err.Error()}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, part := range joined.Unwrap() {
			rest.parts = append(rest.parts, withoutLoss(part))
		}
	}
	return rest
}

// lossless has the text of an error that matches ErrLost, but does not match ErrLost.
type lossless struct {
	text  string
	parts []error
}

func (e *lossless) Error() string { return e.text }

func (e *lossless) Unwrap() []error { return e.parts }

// endedError is ErrReleased, ErrDetached or ErrClosed with the key and table of the call.
type endedError struct {
	table string
	op    string       // the call that sent nothing; "" if the lock has ended
	key   protocol.Key // empty if the call is not for one key
	err   error
}

func (e *endedError) Error() string {
	var b strings.Builder
	b.WriteString(e.err.Error() + ":")
	if e.op != "" {
		b.WriteString(" " + e.op)
	}
	if e.key != (protocol.Key{}) {
		fmt.Fprintf(&b, " %v", e.key)
	}
	b.WriteString(" in table " + e.table)
	return b.String()
}

func (e *endedError) Unwrap() error { return e.err }

// AfterClose returns the error of a call on a client that is closed.
func (e *Env) AfterClose(op string, key protocol.Key) error {
	return &endedError{table: e.Table, op: op, key: key, err: ErrClosed}
}

// Naming adds the key of the lock to err if err says that the lock has ended. It returns
// other errors unchanged.
func (e *Env) Naming(key protocol.Key, err error) error {
	if err == ErrReleased || err == ErrDetached || err == ErrClosed { //nolint:errorlint // what wraps one names it already
		return &endedError{table: e.Table, key: key, err: err}
	}
	return err
}
