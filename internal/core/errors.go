package core

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// The errors that say how a lock has ended.
var (
	ErrLost     = errors.New("leasehold: lock lost")
	ErrReleased = errors.New("leasehold: lock released")
	ErrClosed   = attempts.ErrClosed

	// ErrDetached is the cause of a handle that its caller has detached. It matches ErrReleased: either way the
	// caller has given up the handle.
	ErrDetached error = detachedError{}
)

type detachedError struct{}

func (detachedError) Error() string { return "leasehold: lock detached" }

func (detachedError) Is(target error) bool { return target == ErrReleased }

// Loss is how a lock was lost. [Env.Lost] makes it an error.
type Loss struct {
	Key    protocol.Key
	Token  int64
	Reason Reason
	At     time.Time        // when trust ended, by the wall clock
	By     *protocol.Record // the record that was shown; nil if it was not seen
	Err    error            // error of the last renewal, or of the transaction; nil if none failed
}

// lossError is a Loss as an error, inside. It reads as the error that users know, and wraps it.
type lossError struct {
	Loss
	error
}

func (e *lossError) Unwrap() error { return e.error }

// Lost returns the error of a lock that was lost, from which LossOf reads the Loss again.
func (e *Env) Lost(l Loss) error { return &lossError{l, e.Errors.Lost(l)} }

// Public returns the error that users know: what a caller receives is a *LostError itself.
func Public(err error) error {
	if lost, ok := err.(*lossError); ok { // what wraps one is passed on as it is
		return lost.error
	}
	return err
}

// LossOf returns the Loss that an error of [Env.Lost] says; false if err is none.
func LossOf(err error) (Loss, bool) {
	lost := (*lossError)(nil)
	if !errors.As(err, &lost) {
		return Loss{}, false
	}
	return lost.Loss, true
}

// Reason is why a lock was lost.
type Reason string

// The reasons. The root has the same words.
const (
	Expired  Reason = "expired"
	Paused   Reason = "paused"
	Replaced Reason = "replaced"
	Broken   Reason = "broken"
)

// Seen notes the content of a record that does not show our grants. A free record
// may name none.
func (l *Loss) Seen(r protocol.Record, ours ...string) {
	l.By = &r
	if !r.Released || r.Grant != "" && !slices.Contains(ours, r.Grant) {
		l.Reason = Replaced
	}
}

// SeenGone reports whether the record was seen without the grant.
func (l Loss) SeenGone() bool { return l.Reason == Replaced || l.Reason == Broken }

// Errorf is the error of a call for a key that sent nothing.
func (e *Env) Errorf(op string, key protocol.Key, format string, args ...any) error {
	return fmt.Errorf("leasehold: %s %v in table %s: "+format, append([]any{op, key, e.Table}, args...)...)
}

// UnknownOutcome is the error of an operation that gives up although one of its writes
// may have been applied, or may still be, whatever the last answer was. It never matches
// ErrLost, which would mean that nothing was written: the operation's context may
// have ended because a lock was lost.
func (e *Env) UnknownOutcome(op string, key protocol.Key, err error) error {
	return e.Errors.Failed(op, key, fmt.Errorf("%w: %w", attempts.ErrUnknownOutcome, withoutLoss(err)))
}

// withoutLoss returns err so that it reads the same and matches no loss.
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

// lossless is an error without its ErrLost. The text stays.
type lossless struct {
	text  string
	parts []error
}

func (e *lossless) Error() string { return e.text }

func (e *lossless) Unwrap() []error { return e.parts }

// endedError is ErrReleased, ErrDetached or ErrClosed of a call, with its key and table.
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
	if e.table != "" {
		b.WriteString(" in table " + e.table)
	}
	return b.String()
}

func (e *endedError) Unwrap() error { return e.err }

// AfterClose is the error of a call that Close came before.
func (e *Env) AfterClose(op string, key protocol.Key) error {
	return &endedError{table: e.Table, op: op, key: key, err: ErrClosed}
}

// Naming adds the key of a lock to an error that says how the lock has ended, and names none.
func (e *Env) Naming(key protocol.Key, err error) error {
	if err == ErrReleased || err == ErrDetached || err == ErrClosed { //nolint:errorlint // what wraps one names it already
		return &endedError{table: e.Table, key: key, err: err}
	}
	return err
}
