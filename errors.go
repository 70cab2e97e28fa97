package leasehold

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/breaking"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// Errors that callers match with errors.Is.
var (
	ErrHeld           = errors.New("leasehold: held by another")            // a *HeldError matches it
	ErrDone           = errors.New("leasehold: done already")               // a *DoneError matches it
	ErrLost           = core.ErrLost                                        // a *LostError matches it
	ErrReleased       = core.ErrReleased                                    // the cause of a lock's context after Release or Detach
	ErrClosed         = core.ErrClosed                                      // the client was closed
	ErrNotRun         = errors.New("leasehold: function not run")           // Do failed before it called fn
	ErrNotFound       = errors.New("leasehold: no such record")             // returned by Get, Break, and calls with IfExists
	ErrChanged        = errors.New("leasehold: record has changed")         // a *ChangedError matches it
	ErrUnknownOutcome = attempts.ErrUnknownOutcome                          // a write has no reply: it may have been applied, or may be applied later
	ErrDeadlock       = errors.New("leasehold: this context holds the key") // the wait might never end, because ctx belongs to a lock; see Reentrant
	ErrTableNotFound  = errors.New("leasehold: no such table")              // joined with DynamoDB's ResourceNotFoundException
	ErrHolderUntold   = breaking.ErrHolderUntold                            // returned by Break: the grant is broken, but its holder's shared lease could not be notified
)

// HeldError is returned if another client holds the key. It matches ErrHeld.
type HeldError struct {
	Table  string
	Key    Key
	Holder Record // the record as last read
	Err    error  // why the wait ended, joined with the last failed request; nil if the call did not wait
}

func (e *HeldError) Error() string {
	text := fmt.Sprintf("leasehold: %v is held by %s", e.Key, holderName(e.Holder))
	if says := visible.Remark(e.Holder.Data); says != "" {
		text += fmt.Sprintf(" (%q)", says)
	}
	if at := e.Holder.GrantedAt; !at.IsZero() {
		text += " since " + clockText(at)
	}
	text += inTable(e.Table)
	if e.Holder.Token != 0 {
		text += fmt.Sprintf(" (token %d)", e.Holder.Token)
	}
	if e.Err != nil {
		text += ": " + oneLine(e.Err)
	}
	return text
}

// inTable returns the words of an error that name the table, or "" if the table is not
// known.
func inTable(table string) string {
	if table == "" {
		return ""
	}
	return " in table " + table
}

// oneLine returns an error's text on one line. It shortens a long text, and makes every
// character visible.
func oneLine(err error) string { return visible.Message(err.Error()) }

// holderName returns a record's owner, for people, or "somebody" in layouts without owners.
// It removes a random suffix only from an owner that leasehold wrote.
func holderName(r Record) string {
	if r.Grant != "" {
		return ownerName(r.Owner)
	}
	return visible.Word(cmp.Or(r.Owner, "somebody"))
}

// ownerName returns an owner that leasehold wrote, without its random suffix, for people.
func ownerName(owner string) string {
	return visible.Word(cmp.Or(protocol.ShortOwner(owner), "somebody"))
}

func (e *HeldError) Unwrap() []error { return []error{ErrHeld, e.Err} }

// DoneError is returned if work of Once or Every is done. It matches ErrDone.
type DoneError struct {
	Table string
	Key   Key
	Done  Done
}

func (e *DoneError) Error() string {
	return fmt.Sprintf("leasehold: %v%s: %v", e.Key, inTable(e.Table), &e.Done)
}

func (e *DoneError) Unwrap() error { return ErrDone }

// LostReason is how a lock was lost. Treat unknown reasons as LostExpired.
type LostReason string

// Reasons of a LostError.
const (
	LostExpired  LostReason = "expired"  // no renewal succeeded in time
	LostPaused   LostReason = "paused"   // the process or its machine was suspended for too long to renew
	LostReplaced LostReason = "replaced" // the record shows a later grant, or another process has resumed this grant
	LostBroken   LostReason = "broken"   // an operator broke the lock, or deleted its record
)

// LostError describes how and when a lock was lost. It matches ErrLost.
type LostError struct {
	Table  string
	Key    Key
	Token  int64
	Reason LostReason
	At     time.Time // when trust ended, by the wall clock
	By     *Record   // the record that shows the loss; nil if none was read; By.Broken may describe the break
	Err    error     // error of the last renewal, or of the transaction; nil if neither failed
}

func (e *LostError) Error() string {
	at := e.At.Local().Format("15:04:05.000")
	text := fmt.Sprintf("leasehold: lost %v%s (token %d) at %s: %s", e.Key, inTable(e.Table), e.Token, at, e.how())
	if e.Err != nil {
		text += ": " + advised(e.Err)
	}
	return text
}

// how describes how the lock was lost, in words for a person.
func (e *LostError) how() string {
	by := cmp.Or(e.By, &Record{})
	broken := by.Broken.isOf(e.Token)
	switch {
	case e.Reason == LostPaused:
		return "the process stood still past the lease"
	case e.Reason == LostReplaced && !by.Released && by.Token == e.Token && e.Token != 0:
		return "it was renewed since, by another process that resumed the grant"
	case e.Reason == LostReplaced:
		how := "the record shows a later grant"
		if broken {
			how = by.Broken.brokenText() + "; " + how
		}
		if e.By != nil {
			how += ", of " + holderName(*by)
		}
		return how
	case e.Reason == LostBroken && broken:
		return by.Broken.brokenText()
	case e.Reason == LostBroken && by.Released && by.Token == e.Token: // another process that had resumed the grant may have released it
		return "the record shows it released"
	case e.Reason == LostBroken:
		return "somebody broke or deleted it"
	}
	return "no renewal got through in time"
}

func (e *LostError) Unwrap() []error { return []error{ErrLost, e.Err} }

// CommitError names the caller's writes that cancelled a Commit. Nothing was written, and
// the lock is still held.
type CommitError struct {
	Table   string // table of the lock
	Key     Key
	Reasons []types.CancellationReason // one for each of the caller's writes, in their order
	Err     error                      // *types.TransactionCanceledException
}

func (e *CommitError) Error() string {
	var failed []string
	for i, r := range e.Reasons {
		code := aws.ToString(r.Code)
		if code == "" || code == "None" {
			continue
		}
		text := fmt.Sprintf("write %d: %s", i, visible.Word(code))
		if r.Message != nil {
			text += fmt.Sprintf(" (%s)", visible.Message(*r.Message))
		}
		failed = append(failed, text)
	}
	return fmt.Sprintf("leasehold: commit under %v%s: nothing was written: %s", e.Key, inTable(e.Table), strings.Join(failed, "; "))
}

func (e *CommitError) Unwrap() error { return e.Err }

// ChangedError is returned by Break if the grant ended or, with IfUnrenewed, was renewed.
// Nothing was freed, unless ErrUnknownOutcome matches too.
type ChangedError struct {
	Table string
	Now   Record // the record that Break has read
}

func (e *ChangedError) Error() string {
	if e.Now.Released {
		return fmt.Sprintf("leasehold: %v%s was released meanwhile: nothing to break", e.Now.Key, inTable(e.Table))
	}
	return fmt.Sprintf("leasehold: %v%s has changed: now held by %s: read the record again before breaking it",
		e.Now.Key, inTable(e.Table), holderName(e.Now))
}

func (e *ChangedError) Unwrap() error { return ErrChanged }

// RecordError is returned when the item of a key cannot be read as a lock of the layout.
// Such an item is never treated as free, and never overwritten.
type RecordError struct {
	Table     string
	Key       Key
	Attribute string                          // the attribute that cannot be read
	Problem   string                          // why the attribute cannot be read, for people
	Item      map[string]types.AttributeValue // the item as stored

	otherKind string // text with advice about an undamaged item that is not a usable lock; empty for damaged items
	advice    string // what to do; if empty, the error contains damagedAdvice instead
}

func (e *RecordError) Error() string {
	if e.otherKind != "" {
		return fmt.Sprintf("leasehold: %v%s is %s", e.Key, inTable(e.Table), e.otherKind)
	}
	if e.Key == (Key{}) { // the item has no key, so no leasehold command could show it
		return fmt.Sprintf("leasehold: an item%s is not a lock of this layout: %s %s: %s",
			inTable(e.Table), visible.Word(e.Attribute), visible.Message(e.Problem), decide.OtherSchema)
	}
	return fmt.Sprintf("leasehold: the record of %v%s is not a lock of this layout: %s %s: %s",
		e.Key, inTable(e.Table), visible.Word(e.Attribute), visible.Message(e.Problem), cmp.Or(e.advice, damagedAdvice))
}

// damagedAdvice is the advice in the error about a damaged record. The leasehold command
// appends the record's key when it prints the advice.
const damagedAdvice = "use the layout that wrote it or, if nobody can hold it, see and remove it with leasehold break"

// UnsupportedError is returned if the layout lacks a feature; if Layout is empty, the table lacks
// the feature. The error matches errors.ErrUnsupported.
type UnsupportedError struct{ Table, Layout, Feature string }

func (e *UnsupportedError) Error() string {
	if e.Layout == "" {
		return fmt.Sprintf("leasehold: table %s has no %s", e.Table, e.Feature)
	}
	return fmt.Sprintf("leasehold: layout %s%s, as configured, has no %s", e.Layout, inTable(e.Table), e.Feature)
}

func (cfg *Config) unsupported(feature string) error {
	return &UnsupportedError{Table: cfg.Table, Layout: cfg.Layout.Name(), Feature: feature}
}

func (e *UnsupportedError) Unwrap() error { return errors.ErrUnsupported }

// OpError is returned when a request to DynamoDB fails.
type OpError struct {
	Op    string // "acquire" (every call that acquires), "renew", "release", "commit", "read", "get", "list", "watch", "break", "resume", "forget", "step down"
	Table string
	Key   Key   // empty if the operation is not for one key
	Err   error // error that the SDK has returned
}

func (e *OpError) Error() string {
	what := e.Op
	if e.Key != (Key{}) {
		what += " " + e.Key.String()
	}
	return fmt.Sprintf("leasehold: %s in table %s: %s", what, e.Table, advised(e.Err))
}

func (e *OpError) Unwrap() error { return e.Err }

// advised returns the text of a request's error. If there is advice about the error, the
// text begins with the advice.
func advised(err error) string {
	if advice := advise(err); advice != "" {
		return advice + ": " + oneLine(err)
	}
	return oneLine(err)
}

// advise returns advice about an error of DynamoDB, or "" if there is none.
func advise(err error) string {
	var without *attempts.UnsignedError
	var foreign *attempts.ForeignError
	var answer smithy.APIError
	var sent *smithy.OperationError
	switch {
	case errors.As(err, &foreign):
		return decide.NotDynamoDB
	case errors.As(err, &without): // the error's own text contains advice
	case decide.NoCredentials(err):
		return "no credentials: set AWS_PROFILE or the AWS_ variables"
	case decide.NotSigned(err):
		return "nothing was sent: credentials could not be loaded or used: check the credential provider"
	case errors.As(err, &answer):
		if answer.ErrorCode() == "ResourceNotFoundException" {
			return "create it with leasehold table create, or check region and endpoint"
		}
		return decide.Advice(err)
	case errors.Is(err, context.Canceled): // the caller cancelled the request, so DynamoDB is not the cause
	case errors.As(err, &sent) && decide.Classify(err).Cause == decide.Unreachable:
		return "no answer from DynamoDB: " + decide.CheckConnection
	case errors.Is(err, ErrUnknownOutcome):
		return "no answer has settled it: look at what is there"
	}
	return ""
}

// markedError is an error with the text of err. errors.Is matches it to err and to mark.
type markedError struct{ err, mark error }

func (e *markedError) Error() string        { return e.err.Error() }
func (e *markedError) Is(target error) bool { return target == e.mark }
func (e *markedError) Unwrap() error        { return e.err }

// lastToken is the text, with advice, about a record whose token is protocol.MaxToken.
const lastToken = "at the last fencing token, 2^53-2: choose another key or, once nobody holds this one, " +
	"delete its record: tokens begin anew then, below the tokens that targets have seen"
