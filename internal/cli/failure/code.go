package failure

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/ownrights"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
)

// Exit codes. Commands that run a CMD follow timeout(1), the others grep(1).
const (
	CodeNo      = 1 // held, lost, not found, changed, does not fit
	CodeTrouble = 2 // usage, AWS, network

	CodeNotGranted = 75               // EX_TEMPFAIL of sysexits.h: neither timeout(1), nor env(1), nor a shell exits with it
	CodeLost       = 123              // the lock was lost and CMD was stopped
	CodeNotRun     = ownrights.NotRun // 125: leasehold failed, CMD was not run
	CodeNotExec    = 126              // CMD is not executable
	CodeNoCommand  = 127              // CMD was not found
	CodeSignal     = 128              // + the signal's number
)

// ExitError ends the command with a code. If err is nil, nothing more is
// printed.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// Exit ends the command with a code.
func Exit(code int, err error) error { return &ExitError{code, err} }

// SignalError says that a signal ended a wait.
type SignalError struct {
	Signal syscall.Signal
	Name   string
}

func (e *SignalError) Error() string {
	return "ended by " + e.Name
}

// WaitedError says that the time set by --wait is over.
type WaitedError struct{ Wait time.Duration }

func (e *WaitedError) Error() string { return "waited " + wording.Duration(e.Wait) }

// NotGranted reports whether err means that another owner holds KEY, or that
// the time to wait for it is over. Any other error means that something failed.
func NotGranted(err error) bool {
	var waited *WaitedError
	var op *leasehold.OpError
	return Interrupted(err) == nil && (errors.Is(err, leasehold.ErrHeld) || errors.As(err, &waited) && !errors.As(err, &op))
}

// Answer gives err the exit code for "no" if it is an answer, such as "held" or
// "not found", rather than a failure.
func Answer(err error) error {
	if err == nil {
		return nil
	}
	if ended := Interrupted(err); ended != nil {
		return ended
	}
	if _, answer := kindOf(err); answer {
		return Exit(CodeNo, err)
	}
	return err
}

// NotFound reports whether nothing was done because there is no such record.
func NotFound(err error) bool {
	return errors.Is(err, leasehold.ErrNotFound) && !errors.Is(err, leasehold.ErrUnknownOutcome)
}

// Changed reports whether nothing was done because the record has changed.
func Changed(err error) bool {
	return errors.Is(err, leasehold.ErrChanged) && !errors.Is(err, leasehold.ErrUnknownOutcome)
}

// Interrupted returns the error to exit with if a signal ended the wait, else
// nil.
func Interrupted(err error) error {
	if s := (*SignalError)(nil); errors.As(err, &s) {
		return Exit(CodeSignal+int(s.Signal), nil)
	}
	return nil
}

// Silent reports whether err is nothing but an exit code.
func Silent(err error) bool {
	var code *ExitError
	return err == nil || errors.As(err, &code) && code.Err == nil
}

// Cause returns the reason why ctx ended, or err if it has not ended.
func Cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
