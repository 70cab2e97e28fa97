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
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/hold"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// The errors to match with errors.Is.
var (
	ErrHeld           = errors.New("leasehold: held by another")             // matches *HeldError
	ErrDone           = errors.New("leasehold: done already")                // matches *DoneError
	ErrLost           = hold.ErrLost                                         // matches *LostError
	ErrReleased       = hold.ErrReleased                                     // why the lock's context ended: Release, or Detach
	ErrClosed         = hold.ErrClosed                                       // Close was called
	ErrNotRun         = errors.New("leasehold: function not run")            // Do failed before it called fn
	ErrNotFound       = errors.New("leasehold: no such record")              // from Get, Break and IfExists
	ErrChanged        = errors.New("leasehold: record has changed")          // matches *ChangedError
	ErrUnknownOutcome = attempts.ErrUnknownOutcome                           // a write may have been applied, or may be yet
	ErrDeadlock       = errors.New("leasehold: this context holds the key")  // waiting could never end; see Reentrant
	ErrTableNotFound  = errors.New("leasehold: no such table")               // wraps ResourceNotFoundException
	ErrRecord         = errors.New("leasehold: record is not of the layout") // matches *RecordError
	ErrHolderUntold   = breaking.ErrHolderUntold                             // from Break, under a shared lease: the grant is broken
)

// HeldError says who holds the key. It matches ErrHeld, and also the error that
// ended the wait.
type HeldError struct {
	Table  string
	Key    Key
	Holder Record // as last seen

	// Err is what ended the wait: it matches context.Cause(ctx) and ctx.Err(). It is nil
	// without a wait, as in TryAcquire. If the last request failed, it also has the
	// *OpError: the holder may have released the key since. When several keys were wanted,
	// it also has the *RecordError of a key that could not be read.
	Err error
}

func (e *HeldError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "leasehold: %v is held by %s", e.Key, holderName(e.Holder))
	if says := visible.Remark(e.Holder.Data); says != "" {
		fmt.Fprintf(&b, " (%q)", says)
	}
	if at := e.Holder.GrantedAt; !at.IsZero() {
		fmt.Fprintf(&b, " since %s", clockText(at))
	}
	b.WriteString(inTable(e.Table))
	if e.Holder.Token != 0 {
		fmt.Fprintf(&b, " (token %d)", e.Holder.Token)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %s", oneLine(e.Err))
	}
	return b.String()
}

// inTable names the table in the text of an error, if it is known.
func inTable(table string) string {
	if table == "" {
		return ""
	}
	return " in table " + table
}

// oneLine returns an error's text on one line, bounded, on which all of it shows.
func oneLine(err error) string { return visible.Message(err.Error()) }

// holderName is a record's owner, for people. Some layouts name none. The name that
// a peer wrote is shown whole, even if it looks like one of ours.
func holderName(r Record) string {
	if r.Grant != "" {
		return visible.Word(cmp.Or(protocol.ShortOwner(r.Owner), "somebody"))
	}
	return visible.Word(cmp.Or(r.Owner, "somebody"))
}

// Is reports whether target is ErrHeld.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

func (e *HeldError) Unwrap() error { return e.Err }

// DoneError says that a call with Once or Every was granted nothing, since its work is
// done. It matches ErrDone.
type DoneError struct {
	Table string
	Key   Key
	Done  Done
}

func (e *DoneError) Error() string {
	return fmt.Sprintf("leasehold: %v%s: %v", e.Key, inTable(e.Table), &e.Done)
}

// Is reports whether target is ErrDone.
func (e *DoneError) Is(target error) bool { return target == ErrDone }

// LostReason says how a lock was lost. New values may be added: handle those that you do not
// know as LostExpired.
type LostReason string

// The reasons.
const (
	LostExpired  LostReason = "expired"  // no renewal got through in time
	LostPaused   LostReason = "paused"   // the process or its machine stood still for too long to renew
	LostReplaced LostReason = "replaced" // the record shows a later grant, or another process has resumed this one
	LostBroken   LostReason = "broken"   // somebody broke the lock, or deleted its record
)

// LostError says how and when a lock was lost. It matches ErrLost.
type LostError struct {
	Table  string
	Key    Key
	Token  int64
	Reason LostReason
	At     time.Time // when trust ended, by the wall clock
	By     *Record   // what the record showed; nil if it was not seen. By.Broken may say who broke it, and why
	Err    error     // of the last renewal, or of the transaction; nil: none failed
}

func (e *LostError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "leasehold: lost %v%s (token %d) at %s: ", e.Key, inTable(e.Table), e.Token, e.At.Local().Format("15:04:05.000"))
	broken := e.By != nil && e.By.Broken.isOf(e.Token)
	if broken {
		b.WriteString(e.By.Broken.String())
	}
	switch e.Reason {
	case LostPaused:
		b.WriteString("the process stood still past the lease")
	case LostReplaced:
		if e.By != nil && !e.By.Released && e.By.Token == e.Token && e.Token != 0 {
			b.WriteString("it was renewed since, by another process that resumed the grant")
			break
		}
		if broken {
			b.WriteString("; ")
		}
		b.WriteString("the record shows a later grant")
		if e.By != nil {
			fmt.Fprintf(&b, ", of %s", holderName(*e.By))
		}
	case LostBroken:
		switch {
		case broken:
		case e.By != nil && e.By.Released && e.By.Token == e.Token: // whoever has the grant may release it, from elsewhere too
			b.WriteString("the record shows it released")
		default:
			b.WriteString("somebody broke or deleted it")
		}
	default:
		b.WriteString("no renewal got through in time")
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %s", advised(e.Err))
	}
	return b.String()
}

// Is reports whether target is ErrLost.
func (e *LostError) Is(target error) bool { return target == ErrLost }

func (e *LostError) Unwrap() error { return e.Err }

// CommitError says which of the caller's writes cancelled a Commit. Nothing was
// written, and the lock is still held.
type CommitError struct {
	Table   string // of the lock
	Key     Key
	Reasons []types.CancellationReason // Reasons[i] is that of writes[i]
	Err     error                      // *types.TransactionCanceledException
}

func (e *CommitError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "leasehold: commit under %v%s: nothing was written:", e.Key, inTable(e.Table))
	for i, r := range e.Reasons {
		code := aws.ToString(r.Code)
		if code == "" || code == "None" {
			continue
		}
		fmt.Fprintf(&b, " write %d: %s", i, visible.Word(code))
		if r.Message != nil {
			fmt.Fprintf(&b, " (%s)", visible.Message(*r.Message))
		}
		b.WriteByte(';')
	}
	return strings.TrimSuffix(b.String(), ";")
}

func (e *CommitError) Unwrap() error { return e.Err }

// ChangedError says that the record has changed since it was read for Break. Nothing
// was freed, unless the error is also ErrUnknownOutcome. It matches ErrChanged.
type ChangedError struct {
	Table string
	Now   Record // what Break found
}

func (e *ChangedError) Error() string {
	if e.Now.Released {
		return fmt.Sprintf("leasehold: %v%s was released meanwhile: nothing to break", e.Now.Key, inTable(e.Table))
	}
	return fmt.Sprintf("leasehold: %v%s has changed: now held by %s: look again before breaking it",
		e.Now.Key, inTable(e.Table), holderName(e.Now))
}

// Is reports whether target is ErrChanged.
func (e *ChangedError) Is(target error) bool { return target == ErrChanged }

// RecordError says that the item of a key cannot be read as a lock of the layout.
// Such an item is never taken for free, and never overwritten; of a released record only
// the release mark, the kind and the token are looked at. It matches ErrRecord.
type RecordError struct {
	Table     string
	Key       Key
	Attribute string                          // which cannot be read
	Problem   string                          // why, for people
	Item      map[string]types.AttributeValue // as stored

	otherKind string // what else it is, if it is not damaged, and what to do
	advice    string // what to do; "" if it is damaged
}

func (e *RecordError) Error() string {
	if e.otherKind != "" {
		return fmt.Sprintf("leasehold: %v%s is %s", e.Key, inTable(e.Table), e.otherKind)
	}
	if e.Key == (Key{}) { // no key to look at the item by
		return fmt.Sprintf("leasehold: an item%s is not a lock of this layout: %s %s: %s",
			inTable(e.Table), visible.Word(e.Attribute), visible.Message(e.Problem), decide.OtherSchema)
	}
	return fmt.Sprintf("leasehold: the record of %v%s is not a lock of this layout: %s %s: %s",
		e.Key, inTable(e.Table), visible.Word(e.Attribute), visible.Message(e.Problem), cmp.Or(e.advice, damagedAdvice))
}

// damagedAdvice is what to do about a record that does not read. The command puts the
// key into it.
const damagedAdvice = "use the layout that wrote it or, if nobody can hold it, see and remove it with leasehold break"

// Is reports whether target is ErrRecord.
func (e *RecordError) Is(target error) bool { return target == ErrRecord }

// UnsupportedError says that the layout, as it is configured, cannot do what was
// asked for, whatever the key. Nothing was sent. It matches
// errors.ErrUnsupported.
type UnsupportedError struct{ Table, Layout, Feature string }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("leasehold: layout %s%s, as configured, has no %s", e.Layout, inTable(e.Table), e.Feature)
}

func (cfg *Config) unsupported(feature string) error {
	return &UnsupportedError{Table: cfg.Table, Layout: cfg.Layout.Name(), Feature: feature}
}

// Is reports whether target is errors.ErrUnsupported.
func (e *UnsupportedError) Is(target error) bool { return target == errors.ErrUnsupported }

// OpError says that a request to DynamoDB failed, and in which operation. For every
// call that acquires, that is "acquire".
type OpError struct {
	Op    string // "acquire", "renew", "release", "commit", "read", "get", "list", "watch", "break", "resume", "holders", "resize", "forget", "step down"
	Table string
	Key   Key   // empty if the operation is not for one key
	Err   error // the SDK's
}

func (e *OpError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "leasehold: %s", e.Op)
	if e.Key != (Key{}) {
		fmt.Fprintf(&b, " %v", e.Key)
	}
	fmt.Fprintf(&b, " in table %s: %s", e.Table, advised(e.Err))
	return b.String()
}

func (e *OpError) Unwrap() error { return e.Err }

// advised is the text of an error of a request: what to do about it, then the error.
func advised(err error) string {
	if advice := advise(err); advice != "" {
		return advice + ": " + oneLine(err)
	}
	return oneLine(err)
}

// advise says what to do about an error of DynamoDB.
func advise(err error) string {
	var without *attempts.UnsignedError
	var foreign *attempts.ForeignError
	switch {
	case errors.As(err, &foreign):
		return decide.NotDynamoDB
	case errors.As(err, &without):
		return "" // which says it itself
	case decide.NoCredentials(err):
		return "no credentials: set AWS_PROFILE or the AWS_ variables"
	case decide.NotSigned(err):
		return "nothing was sent: credentials could not be had, or not be used: see to those who give them"
	}
	var api smithy.APIError
	switch {
	case !errors.As(err, &api):
		return adviseSilence(err)
	case api.ErrorCode() == "ResourceNotFoundException":
		return "create it with leasehold table create, or check region and endpoint"
	}
	return decide.Advice(err)
}

// adviseSilence says what to do about an error that is no answer. One that came because
// the caller cancelled the request says nothing of DynamoDB.
func adviseSilence(err error) string {
	var sent *smithy.OperationError
	switch {
	case errors.Is(err, context.Canceled):
	case errors.As(err, &sent) && decide.Classify(err).Cause == decide.Unreachable:
		return "no answer from DynamoDB: " + decide.CheckConnection
	case errors.Is(err, ErrUnknownOutcome):
		return "no answer has settled it: look at what is there"
	}
	return ""
}

// errorf is the error of a call for a key that sent nothing.
func (c *Client) errorf(op string, key Key, format string, args ...any) error {
	return c.holds.Errorf(op, key, format, args...)
}

// afterClose is the error of a call that Close came before.
func (c *Client) afterClose(op string, key Key) error {
	return c.holds.AfterClose(op, key)
}

// opError wraps an error of the SDK.
func opError(op, table string, key Key, err error) error {
	var none *types.ResourceNotFoundException
	if errors.As(err, &none) {
		err = fmt.Errorf("%w: %w", ErrTableNotFound, err)
	}
	return &OpError{Op: op, Table: table, Key: key, Err: err}
}

// notRunError marks an error of Do from before the function was called.
type notRunError struct{ err error }

func (e *notRunError) Error() string        { return e.err.Error() }
func (e *notRunError) Is(target error) bool { return target == ErrNotRun }
func (e *notRunError) Unwrap() error        { return e.err }

// recordError is the error for an item that could not be read as a lock of the layout.
func (c *Client) recordError(key Key, item protocol.Item, err error) error {
	if errors.Is(err, protocol.ErrLastToken) {
		return &RecordError{Table: c.cfg.Table, Key: key, Item: item, Attribute: "fencingToken", Problem: err.Error(), otherKind: lastToken}
	}
	bad := &RecordError{Table: c.cfg.Table, Key: key, Item: item, Attribute: "item", Problem: err.Error()}
	if d := (*protocol.DecodeError)(nil); errors.As(err, &d) {
		bad.Attribute, bad.Problem = d.Attribute, d.Problem
	}
	if r, ok := records.LockBut(c.proto, item, bad.Attribute); ok {
		lock := "a free lock of layout " + c.cfg.Layout.Name()
		if !r.Released {
			lock = fmt.Sprintf("a lock of layout %s, held by %s", c.cfg.Layout.Name(), holderName(recordOf(r)))
		}
		bad.advice = fmt.Sprintf("without it this is %s: rename the attribute %s, or use the leasehold that wrote it", lock, visible.Word(bad.Attribute))
	}
	return bad
}

// lastToken says what a record with protocol.MaxToken is, and what to do.
const lastToken = "at the last fencing token, 2^53-2: choose another key or, once nobody holds this one, " +
	"delete its record: tokens begin anew then, below those that targets have seen"
