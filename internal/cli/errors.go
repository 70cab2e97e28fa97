package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/aws/smithy-go"
	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/decide"
)

// Exit codes. Commands that run a CMD follow timeout(1), the others grep(1).
const (
	codeNo      = 1 // held, lost, not found, changed, does not fit
	codeTrouble = 2 // usage, AWS, network

	codeLost       = 123 // the lock was lost and CMD was stopped
	codeNotGranted = 124
	codeNotRun     = 125 // leasehold failed, CMD was not run
	codeNotExec    = 126 // CMD is not executable
	codeNoCommand  = 127 // CMD was not found
	codeSignal     = 128 // + the signal's number
)

// exitError ends the command with a code. If err is nil, nothing more is
// printed.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// exit ends the command with a code.
func exit(code int, err error) error { return &exitError{code, err} }

// usageError is a mistake in the command line or the environment.
type usageError struct{ message string }

func (e *usageError) Error() string { return e.message }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// usageOf is usagef with a reference to the help of cmd.
func usageOf(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...) + ": see " + cmd.CommandPath() + " --help"}
}

// signalError says that a signal ended a wait.
type signalError struct{ signal syscall.Signal }

func (e *signalError) Error() string {
	return "ended by " + signalName(e.signal)
}

// waitedError says that the time set by --wait is over.
type waitedError struct{ wait time.Duration }

func (e *waitedError) Error() string { return "waited " + shortDuration(e.wait) }

// notGranted reports whether err means that another owner holds KEY, or that
// the time to wait for it is over. Any other error means that something failed.
func notGranted(err error) bool {
	var waited *waitedError
	var op *leasehold.OpError
	return interrupted(err) == nil && (errors.Is(err, leasehold.ErrHeld) || errors.As(err, &waited) && !errors.As(err, &op))
}

// answer gives err the exit code for "no" if it is an answer, such as "held" or
// "not found", rather than a failure.
func answer(err error) error {
	switch {
	case err == nil:
		return nil
	case interrupted(err) != nil:
		return interrupted(err)
	case notGranted(err), errors.Is(err, leasehold.ErrLost), isNotThere(err), hasChanged(err):
		return exit(codeNo, err)
	}
	return err
}

// isNotThere reports whether nothing was done because there is no such record.
func isNotThere(err error) bool {
	return errors.Is(err, leasehold.ErrNotFound) && !errors.Is(err, leasehold.ErrUnknownOutcome)
}

// hasChanged reports whether nothing was done because the record has changed.
func hasChanged(err error) bool {
	return errors.Is(err, leasehold.ErrChanged) && !errors.Is(err, leasehold.ErrUnknownOutcome)
}

// interrupted returns the error to exit with if a signal ended the wait, else
// nil.
func interrupted(err error) error {
	if s := (*signalError)(nil); errors.As(err, &s) {
		return exit(codeSignal+int(s.signal), nil)
	}
	return nil
}

// configError is an error of leasehold.New: a flag has a bad value.
type configError struct{ err error }

func (e *configError) Error() string {
	return strings.ReplaceAll(e.err.Error(), "leasehold: config: ", "")
}

func (e *configError) Unwrap() error { return e.err }

// kindOf is the value of "error" in an error's JSON.
func kindOf(err error) string {
	var usage *usageError
	var config *configError
	var op *leasehold.OpError
	var api smithy.APIError
	var sdk *smithy.OperationError
	switch {
	case errors.As(err, &usage), errors.As(err, &config):
		return "usage"
	case notGranted(err):
		return "held"
	case errors.Is(err, leasehold.ErrLost):
		return "lost"
	case isNotThere(err):
		return "not_found"
	case hasChanged(err):
		return "changed"
	case errors.Is(err, leasehold.ErrBadRecord):
		return "bad_record"
	case errors.Is(err, leasehold.ErrTableNotFound):
		return "no_table"
	case errors.Is(err, errors.ErrUnsupported):
		return "unsupported"
	case errors.Is(err, leasehold.ErrUnknownOutcome):
		return "unknown"
	case errors.As(err, &op), errors.As(err, &api), errors.As(err, &sdk):
		return "aws"
	}
	return "unknown"
}

// recordIn returns the record in an error, nil for none.
func recordIn(err error) *leasehold.Record {
	var held *leasehold.HeldError
	var changed *leasehold.ChangedError
	var lost *leasehold.LostError
	switch {
	case errors.As(err, &held):
		return &held.Holder
	case errors.As(err, &changed):
		return &changed.Now
	case errors.As(err, &lost):
		return lost.By
	}
	return nil
}

// errorText describes an error in one line: what failed, for which key and where,
// which is a table or a file, and what to do next. Of an SDK error it keeps only what AWS said.
func errorText(err error, where string) string {
	var op *leasehold.OpError
	var lost *leasehold.LostError
	var sdk *smithy.OperationError
	switch {
	case errors.As(err, &lost) && lost.Err != nil:
		// Its text contains that of the last renewal's error: shorten that.
		brief := *lost
		brief.Err = nil
		return strings.ReplaceAll(oneLine(trim(err)), oneLine(trim(lost)), oneLine(trim(&brief))) + ": " + reason(lost.Err)
	case errors.As(err, &op):
		what := op.Op
		if op.Key != (leasehold.Key{}) {
			what += " " + printable(op.Key.String())
		}
		what += " in " + where + ": "
		if errors.Is(err, leasehold.ErrTableNotFound) {
			return what + "the table does not exist: create it with leasehold table create, or check the region and endpoint"
		}
		if errors.Is(err, leasehold.ErrUnknownOutcome) {
			what += "the outcome is unknown: "
		}
		return what + reason(op.Err) + remedy(op.Err)
	case errors.Is(err, leasehold.ErrTableNotFound):
		return where + " does not exist: create it with leasehold table create, or check the region and endpoint"
	case errors.As(err, &sdk):
		return sdk.Operation() + " on " + where + ": " + reason(sdk) + remedy(sdk)
	}
	return oneLine(trim(err))
}

// trim returns an error's text without the prefix "leasehold: " and without the
// table, which the user has named.
func trim(err error) string {
	text := strings.TrimPrefix(err.Error(), "leasehold: ")
	var held *leasehold.HeldError
	var lost *leasehold.LostError
	var changed *leasehold.ChangedError
	var record *leasehold.RecordError
	var unsupported *leasehold.UnsupportedError
	switch {
	case errors.As(err, &held):
		return strings.Replace(text, " in table "+held.Table, "", 1)
	case errors.As(err, &lost):
		return strings.Replace(text, " in table "+lost.Table, "", 1)
	case errors.As(err, &changed):
		return strings.Replace(text, " in table "+changed.Table, "", 1)
	case errors.As(err, &record):
		text = strings.Replace(text, " in table "+record.Table, "", 1)
		key := shellWords(record.Key)
		text = strings.Replace(text, "leasehold get --raw", "leasehold get --raw "+key, 1)
		return strings.Replace(text, "leasehold break --damaged", "leasehold break --damaged "+key, 1)
	case errors.As(err, &unsupported):
		return strings.Replace(text, " in table "+unsupported.Table, "", 1)
	}
	return text
}

// shellWords returns a key as the arguments of a command.
func shellWords(k leasehold.Key) string {
	words := shellWord(k.Partition)
	if strings.HasPrefix(k.Partition, "-") {
		words = "-- " + words
	}
	if k.Sort != "" {
		words = "--sort-key " + shellWord(k.Sort) + " " + words
	}
	return words
}

// shellWord quotes a word for a shell, if that is needed.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:@%+,=", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return dollarQuoted(s)
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// dollarQuoted is $'...', in which what would disturb a terminal or a line stands as
// octal numbers (POSIX.1-2024, XCU 2.2.4; bash, zsh and BusyBox have it).
func dollarQuoted(s string) string {
	var b strings.Builder
	b.WriteString("$'")
	for _, r := range s {
		switch {
		case r == '\'', r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			for _, octet := range []byte(string(r)) {
				fmt.Fprintf(&b, `\%03o`, octet)
			}
		}
	}
	return b.String() + "'"
}

// reason says why a request failed, after what to do about it.
func reason(err error) string {
	switch {
	case decide.NoCredentials(err) && strings.Contains(err.Error(), "no EC2 IMDS role found"): // nowhere, down to the last place
		return "no credentials were found in AWS_ACCESS_KEY_ID, the profile (~/.aws/config and credentials) or this machine's metadata service: type aws configure or aws sso login, set AWS_PROFILE, or use --profile"
	case decide.NoCredentials(err):
		return oneLine("no credentials: set AWS_PROFILE or the AWS_ variables, or use --profile: " + providerError(err))
	case decide.NotSigned(err):
		return oneLine("the request could not be signed: check the source of the credentials: " + providerError(err))
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		said := api.ErrorCode()
		if api.ErrorMessage() != "" {
			said += ": " + api.ErrorMessage()
		}
		switch {
		case decide.Throttled(err):
			return oneLine("throttled: " + adviceThrottled + ": " + said)
		case decide.InConflict(err):
			return oneLine("in conflict with other writes: try again: " + said)
		case decide.Classify(err).Outage:
			return oneLine("DynamoDB has failed: try again later: " + said)
		}
		return oneLine(advice(api) + said)
	}
	text := err.Error()
	var address *net.OpError
	var link *url.Error
	switch {
	case errors.As(err, &address) && errors.As(err, &link):
		return oneLine(fmt.Sprintf("no connection to %s: %v", link.URL, address.Err))
	case isTimeout(err):
		return "no answer in time"
	case strings.Contains(text, "Missing Region"), strings.Contains(text, "not a valid host label"), strings.Contains(text, "Invalid Configuration"):
		return "no region: set AWS_REGION or use --region"
	}
	return oneLine(text)
}

// remedy says what to do if no reply came. AWS's own errors have their advice first.
func remedy(err error) string {
	var address *net.OpError
	if errors.As(err, &address) || isTimeout(err) {
		return ": " + adviceUnreachable
	}
	return ""
}

// isTimeout reports whether a request got no reply in time.
func isTimeout(err error) bool {
	var timed net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timed) && timed.Timeout()
}

// providerError is the text of the credential provider's own error.
func providerError(err error) string {
	text := err.Error()
	for _, step := range []string{"get identity: ", "get credentials: ", "failed to refresh cached credentials, "} {
		if _, said, ok := strings.Cut(text, step); ok {
			text = said
		}
	}
	return text
}

// advice says what to do about a DynamoDB error code.
func advice(api smithy.APIError) string {
	if strings.HasPrefix(api.ErrorMessage(), "KMS ") {
		return "the KMS key that encrypts the table cannot be used: enable it, and allow its use in the key's policy: "
	}
	switch api.ErrorCode() {
	case "AccessDeniedException", "AccessDenied":
		return "access denied: allow it in the caller's IAM policy: "
	case "ExpiredTokenException", "ExpiredToken":
		return "the credentials have expired: renew them: "
	case "UnrecognizedClientException", "InvalidSignatureException", "IncompleteSignatureException", "MissingAuthenticationTokenException":
		return "the credentials were refused: check them, the region and this machine's clock: "
	case "ValidationException":
		if strings.Contains(api.ErrorMessage(), "schema") {
			return "the table's key does not fit the layout: run leasehold table check: "
		}
	case "ItemCollectionSizeLimitExceededException":
		return "the table has a local secondary index, which is full: use a lock table without one: "
	case "LimitExceededException":
		return "a limit of the AWS account is reached: try again later, or ask AWS for more: "
	case "UnknownError":
		return "the answer is not DynamoDB's: check proxies and the endpoint: "
	}
	return ""
}

// oneLine joins the lines of text, such as those of errors.Join.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
