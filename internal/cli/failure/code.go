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

// Exit codes. Commands that run a CMD follow timeout(1), the others grep(1).
const (
	CodeNo      = 1 // the answer is no: held, lost, not found, changed, does not fit
	CodeTrouble = 2 // failure: usage, AWS, network

	CodeNotGranted = 75               // EX_TEMPFAIL of sysexits.h, chosen because timeout(1), env(1) and shells do not exit with it
	CodeLost       = 123              // the lock was lost, and leasehold stopped CMD
	CodeNotRun     = ownrights.NotRun // 125: leasehold failed, CMD was not run
	CodeNotExec    = 126              // CMD is not executable
	CodeNoCommand  = 127              // CMD was not found
	CodeSignal     = 128              // a signal ended the command; the exit code is this code plus the signal's number
)

// ExitError is an error that ends the command with an exit code. If Err is nil, nothing is
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

// Exit returns an *ExitError.
func Exit(code int, err error) error { return &ExitError{code, err} }

// MisuseError is the error of a mistake in the command line or the environment: the user must
// change something that was typed, set or named. Its text says how to correct the mistake. It
// is printed unchanged.
type MisuseError struct{ message string }

func (e *MisuseError) Error() string { return e.message }

// Misusef returns a *MisuseError.
func Misusef(format string, args ...any) error { return &MisuseError{fmt.Sprintf(format, args...)} }

// MisuseOf returns a *MisuseError in the use of cmd. It refers to the help of cmd.
func MisuseOf(cmd *cobra.Command, format string, args ...any) error {
	return Misusef("%s: see %s --help", fmt.Sprintf(format, args...), cmd.CommandPath())
}

// SignalError is the error of a wait that a signal ended.
type SignalError struct {
	Signal syscall.Signal
	Name   string
}

func (e *SignalError) Error() string {
	return "ended by " + e.Name
}

// WaitedError is the error of a wait that lasted as long as --wait allows.
type WaitedError struct{ Wait time.Duration }

func (e *WaitedError) Error() string { return "waited " + wording.Duration(e.Wait) }

// NotGranted reports whether err means that another owner holds KEY, or that --wait has
// passed. Any other error means that something failed.
func NotGranted(err error) bool {
	return Interrupted(err) == nil && (errors.Is(err, leasehold.ErrHeld) || is[*WaitedError](err) && !is[*leasehold.OpError](err))
}

// Answer returns err with the exit code for "no" if err is an answer, such as "held" or
// "not found", rather than a failure.
func Answer(err error) error {
	if ended := Interrupted(err); ended != nil {
		return ended
	}
	if _, answer := Kind(err); answer {
		return Exit(CodeNo, err)
	}
	return err
}

// Interrupted returns the error to exit with if a signal ended the wait. Otherwise it
// returns nil.
func Interrupted(err error) error {
	if s, ok := As[*SignalError](err); ok {
		return Exit(CodeSignal+int(s.Signal), nil)
	}
	return nil
}

// Silent reports whether err contains only an exit code, and no text to print.
func Silent(err error) bool {
	code, exits := As[*ExitError](err)
	return err == nil || exits && code.Err == nil
}

// Cause returns the reason why ctx ended, or err if it has not ended.
func Cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// kinds lists the kinds of error, for the user who typed the command. If several kinds fit
// an error, the first is used; if none fits, the kind is unknown.
var kinds = []struct {
	name   string // name in JSON
	fits   func(error) bool
	answer bool // true if the error is the answer "no" rather than a failure
}{
	{"usage", is[*MisuseError], false},
	{"held", NotGranted, true},
	{"lost", matches(leasehold.ErrLost), true},
	{"not_found", didNothing(leasehold.ErrNotFound), true},
	{"not_found", matches(election.ErrNoLeader), true},
	{"not_found", matches(election.ErrLeaderDead), true},
	{"changed", didNothing(leasehold.ErrChanged), true},
	{"bad_record", is[*leasehold.RecordError], false},
	{"no_table", noTable, false},
	{"unsupported", matches(errors.ErrUnsupported), false},
	{"untold", matches(leasehold.ErrHolderUntold), false},
	{"unknown", matches(leasehold.ErrUnknownOutcome), false},
	{"aws", is[*leasehold.OpError], false},
	{"aws", matches(boltstore.ErrBusy), false},
	{"aws", is[smithy.APIError], false},
	{"aws", is[*smithy.OperationError], false},
}

// Kind returns the value of "error" in an error's JSON. answer is true if the error is the
// answer "no" rather than a failure.
func Kind(err error) (name string, answer bool) {
	for _, k := range kinds {
		if k.fits(err) {
			return k.name, k.answer
		}
	}
	return "unknown", false
}

func is[E error](err error) bool {
	_, ok := As[E](err)
	return ok
}

// As returns the first error of type E that errors.As finds in err.
func As[E error](err error) (E, bool) {
	var target E
	ok := errors.As(err, &target)
	return target, ok
}

func matches(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

// didNothing returns a function that reports whether an error matches target and means that
// nothing was done.
func didNothing(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) && !errors.Is(err, leasehold.ErrUnknownOutcome) }
}

// noTable reports whether err says that the table does not exist. The error comes from the
// library or from DynamoDB. If the command itself sent the request, there is only
// DynamoDB's error.
func noTable(err error) bool {
	return errors.Is(err, leasehold.ErrTableNotFound) || is[*types.ResourceNotFoundException](err)
}

// subject is the record or table that an error of the library is about.
type subject struct {
	table   string // the table that the error's text contains, although the user has named it
	record  *leasehold.Record
	damaged *leasehold.RecordError // set if the error is about a damaged record; its text contains a command without the key
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

// Record returns the record in an error; nil if there is none.
func Record(err error) *leasehold.Record { return subjectOf(err).record }
