package core

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/machine"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

// Env is shared by the parts of one client. It does not change after New.
type Env struct {
	machine.Machine // clocks and random numbers
	*Running

	Table    string
	Requests *attempts.Sender
	Proto    protocol.Protocol
	Native   protocol.Native     // same value as Proto if Proto has queues, marks and sessions; otherwise nil
	Caps     layout.Capabilities // capabilities of the layout
	Name     string              // the owner's name as the user gave it
	Owner    string              // Name with the client's id appended; the owner of grants without a session
	Log      *slog.Logger

	Lease            time.Duration // default lease of grants and sessions
	PollMin, PollMax time.Duration // shortest and longest pause between two reads by a waiter
	ReleaseGrace     time.Duration
	Retention        time.Duration // time for which a released record is kept; zero means the default, a negative value forever
	DeletesByDefault bool          // true if a release deletes the record, unless the caller of the release chooses otherwise

	Errors   Errors
	Listener Listener
}

// Errors makes the errors whose types are part of the public API.
type Errors interface {
	// Lost returns the error of a lock that was lost. It matches ErrLost.
	Lost(l Loss) error

	// Held returns the error of a key that holder holds. why is the reason why the wait
	// ended, or nil if the caller did not wait.
	Held(key protocol.Key, holder protocol.Record, why error) error

	// Ended returns the error of a wait that ended before DynamoDB had answered about the
	// key. why is the reason why the wait ended.
	Ended(key protocol.Key, why error) error

	// Done returns the error of work that another client has finished.
	Done(key protocol.Key, by protocol.Done) error

	// Missing returns the error of a key that has no record, although it must have one.
	Missing(key protocol.Key) error

	// Changed returns the error of a record that shows a grant other than the expected one,
	// or that shows a free key.
	Changed(now protocol.Record) error

	// Unreadable returns the error of an item that cannot be read as a record of the key.
	Unreadable(key protocol.Key, item protocol.Item, err error) error

	// Uncommitted returns the error of a commit that was cancelled by some of the caller's
	// own writes.
	Uncommitted(key protocol.Key, reasons []types.CancellationReason, err error) error

	// Failed returns the error of an operation whose request failed. The operation's write
	// may have been applied or not.
	Failed(op string, key protocol.Key, err error) error
}

// Listener receives reports. No mutex is held while it is called.
type Listener interface {
	Report(ctx context.Context, e Event)
}

// Event is a report to a Listener. A field is zero if it does not apply to the kind of
// event.
type Event struct {
	Kind      Kind
	Key       protocol.Key
	Token     int64
	Holder    *protocol.Record // record of the key's holder, for Waiting
	Position  int              // position in the record's queue, for Waiting; the first position is 1, and 0 means not in the queue
	Took      time.Duration    // time that the requests took
	Held      time.Duration    // time for which the grant lasted; zero if an earlier event has reported it
	Remaining time.Duration    // how much longer the lock is trusted
	Requests  int
	Locks     int // number of locks that are held now, for Kept
	Err       error
}

// Kind is the kind of an event. The events of the root package have the same values.
type Kind string

// Kinds of events.
const (
	Waiting    Kind = "waiting" // reported once for each holder that a waiter sees, and once for each position in the queue
	Kept       Kind = "kept"    // reported when the client holds one more lock with a lease of its own, and not a session's; there is no public event for it
	Renewed    Kind = "renewed"
	RenewError Kind = "renew_error"
	Lost       Kind = "lost"
	Released   Kind = "released"
	Committed  Kind = "committed"
	Throttled  Kind = "throttled"
	WaitError  Kind = "wait_error" // reported now and then while requests of a waiter fail and are repeated, or when the wait leaves out a key
)

// ReportThrottled reports a request that was throttled, or in conflict with a transaction.
func (e *Env) ReportThrottled(ctx context.Context, key protocol.Key, token int64, err error) {
	e.Listener.Report(ctx, Event{Kind: Throttled, Key: key, Token: token, Requests: 1, Err: err})
}

// Decode decodes an item as the record of key.
func (e *Env) Decode(key protocol.Key, item protocol.Item) (protocol.Record, error) {
	return e.DecodeBy(e.Proto, key, item)
}

// DecodeBy decodes an item as Decode does. It uses proto, the protocol of another kind of
// row, such as a session's.
func (e *Env) DecodeBy(proto protocol.Protocol, key protocol.Key, item protocol.Item) (protocol.Record, error) {
	r, err := proto.Decode(item)
	if err != nil {
		return r, e.Errors.Unreadable(key, item, err)
	}
	return r, nil
}

// Expires returns the time from which TTL may delete a record that is released now. The
// zero time means never. If mark is true, the record may have the mark of done work, and
// Expires returns the zero time: without the mark, the work would be done again. If data is
// true, the record has data of the caller. Expires then also returns the zero time, unless
// Retention is set.
func (e *Env) Expires(data, mark bool) time.Time {
	if mark || e.Retention < 0 || data && e.Retention == 0 {
		return time.Time{}
	}
	return e.Wall().Add(cmp.Or(e.Retention, defaultRetention))
}

// defaultRetention is how long a released record without data of the caller is kept.
const defaultRetention = 7 * 24 * time.Hour

// keepDead is the time for which the row of a dead session is kept before TTL may delete
// it. It does not depend on Retention, since the row contains no data of the caller. The
// row is needed to reject requests that are applied late. Such requests are late by
// minutes. A week is long enough even if the wall clock is days behind, which would make
// TTL delete the row too early.
const keepDead = 7 * 24 * time.Hour

// DeadExpires returns the time from which TTL may delete the row of a session that is
// marked dead now.
func (e *Env) DeadExpires() time.Time { return e.Wall().Add(keepDead) }
