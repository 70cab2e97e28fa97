package failure

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
	"github.com/leasehold-go/leasehold/internal/cli/ownrights"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/localdynamo/boltstore"
)

// Exit codes of leasehold. The codes of commands that run a CMD follow timeout(1). The
// codes of all other commands follow grep(1).
const (
	CodeNo      = 1 // the answer is "no": the key is held, the lock was lost, the record was not found or has changed, or the table does not fit the layout
	CodeTrouble = 2 // leasehold failed: wrong usage, AWS or the network

	CodeNotGranted = 75               // KEY was not granted; EX_TEMPFAIL of sysexits.h, which timeout(1), env(1) and shells do not use
	CodeLost       = 123              // the lock was lost, and leasehold stopped CMD or did not run it
	CodeNotRun     = ownrights.NotRun // 125: leasehold failed before it ran CMD
	CodeNotExec    = 126              // CMD was found, but is not executable
	CodeNoCommand  = 127              // CMD was not found
	CodeSignal     = 128              // a signal ended the command: the exit code is 128 plus the signal's number
)

// ExitError is an error that ends leasehold with exit code Code. If Err is nil, leasehold
// prints no message.
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

// Exit returns an *ExitError that contains code and err.
func Exit(code int, err error) error { return &ExitError{code, err} }

// MisuseError reports a mistake of the user in the command line, in the environment, or in
// a file that the user has named there. The error's text says how to correct the mistake,
// and is printed unchanged.
type MisuseError struct{ message string }

func (e *MisuseError) Error() string { return e.message }

// Misusef returns a *MisuseError with the formatted text.
func Misusef(format string, args ...any) error { return &MisuseError{fmt.Sprintf(format, args...)} }

// MisuseOf returns a *MisuseError for a wrong use of cmd. Its text ends with a reference to
// the help of cmd.
func MisuseOf(cmd *cobra.Command, format string, args ...any) error {
	return Misusef("%s: see %s --help", fmt.Sprintf(format, args...), cmd.CommandPath())
}

// SignalError is the error of an operation that a signal interrupted, such as the wait for a key.
type SignalError struct {
	Signal syscall.Signal
	Name   string
}

func (e *SignalError) Error() string {
	return "ended by " + e.Name
}

// WaitedError means that a wait for a key ended because the time of --wait had passed.
type WaitedError struct{ Wait time.Duration }

func (e *WaitedError) Error() string { return "waited " + wording.Duration(e.Wait) }

// NotGranted reports whether err means that KEY was not granted, because another client
// holds it or the time of --wait has passed. It returns false if a signal ended the wait,
// or if a request failed before a holder was seen.
func NotGranted(err error) bool {
	return Interrupted(err) == nil && (errors.Is(err, leasehold.ErrHeld) || is[*WaitedError](err) && !is[*leasehold.OpError](err))
}

// Answer is for the error of a command whose result may be "no", such as "not found". It adds the
// exit code CodeNo if err means "no". After a signal, it returns only the signal's exit code. It
// returns any other error unchanged.
func Answer(err error) error {
	if ended := Interrupted(err); ended != nil {
		return ended
	}
	if _, answer := Kind(err); answer {
		return Exit(CodeNo, err)
	}
	return err
}

// Interrupted returns an error with the exit code for a signal if err contains a
// *SignalError. Otherwise it returns nil.
func Interrupted(err error) error {
	if s, ok := As[*SignalError](err); ok {
		return Exit(CodeSignal+int(s.Signal), nil)
	}
	return nil
}

// Silent reports whether err has no text to print, because it is nil or only an exit code.
func Silent(err error) bool {
	code, exits := As[*ExitError](err)
	return err == nil || exits && code.Err == nil
}

// Cause returns the cause of ctx's cancellation instead of the error err. It returns err if
// ctx is not cancelled, or if err is nil.
func Cause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Kind returns the field "error" of JSON output: the first kind below that fits err, or "unknown"
// if none does. The result "answer" is true if err is the answer "no" rather than a failure.
func Kind(err error) (name string, answer bool) {
	unknown := errors.Is(err, leasehold.ErrUnknownOutcome) // the failed request may have changed something
	switch {
	case is[*MisuseError](err):
		return "usage", false
	case NotGranted(err):
		return "held", true
	case errors.Is(err, leasehold.ErrLost):
		return "lost", true
	case errors.Is(err, leasehold.ErrNotFound) && !unknown, errors.Is(err, election.ErrNoLeader), errors.Is(err, election.ErrLeaderDead):
		return "not_found", true
	case errors.Is(err, leasehold.ErrChanged) && !unknown:
		return "changed", true
	case is[*leasehold.RecordError](err):
		return "bad_record", false
	case noTable(err):
		return "no_table", false
	case errors.Is(err, errors.ErrUnsupported):
		return "unsupported", false
	case errors.Is(err, leasehold.ErrHolderUntold):
		return "untold", false
	case unknown:
		return "unknown", false
	case is[*leasehold.OpError](err), errors.Is(err, boltstore.ErrBusy), is[smithy.APIError](err), is[*smithy.OperationError](err):
		return "aws", false
	}
	return "unknown", false
}

func is[E error](err error) bool { return errors.As(err, new(E)) }

// As returns the first error of type E in err's chain, as errors.As does.
func As[E error](err error) (E, bool) {
	var target E
	ok := errors.As(err, &target)
	return target, ok
}

// noTable reports whether err means that the table does not exist. The library reports this
// as ErrTableNotFound. For requests that the command sends itself, the SDK reports it as
// ResourceNotFoundException.
func noTable(err error) bool {
	return errors.Is(err, leasehold.ErrTableNotFound) || is[*types.ResourceNotFoundException](err)
}

// subject is the record or table that an error of package leasehold is about.
type subject struct {
	table   string // table name in the error's text; Brief removes it, because the user has named the table
	record  *leasehold.Record
	damaged *leasehold.RecordError // set if a record is damaged; the text then suggests a command, and Brief adds the key to that command
}

func subjectOf(err error) subject {
	if held, ok := As[*leasehold.HeldError](err); ok {
		return subject{table: held.Table, record: &held.Holder}
	}
	if done, ok := As[*leasehold.DoneError](err); ok {
		return subject{table: done.Table}
	}
	if lost, ok := As[*leasehold.LostError](err); ok {
		return subject{table: lost.Table, record: lost.By}
	}
	if changed, ok := As[*leasehold.ChangedError](err); ok {
		return subject{table: changed.Table, record: &changed.Now}
	}
	if record, ok := As[*leasehold.RecordError](err); ok {
		return subject{table: record.Table, damaged: record}
	}
	if unsupported, ok := As[*leasehold.UnsupportedError](err); ok {
		return subject{table: unsupported.Table}
	}
	return subject{}
}

// Record returns the lock record that err contains, or nil if it contains none.
func Record(err error) *leasehold.Record { return subjectOf(err).record }
