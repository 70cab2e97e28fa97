package core

import (
	"context"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/machine"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

// Env is what the parts of one client share. It does not change once it is made.
type Env struct {
	machine.Machine // its clocks and random numbers
	*Running

	Table    string
	Requests *attempts.Sender
	Proto    protocol.Protocol
	Native   protocol.Native     // Proto, if it has queues, marks and sessions; otherwise nil
	Caps     layout.Capabilities // capabilities of the layout
	Name     string              // the owner as the user has named it
	Owner    string              // the same with the client's id, for grants without a session
	Log      *slog.Logger

	Lease            time.Duration // default lease of grants and sessions
	PollMin, PollMax time.Duration // pauses of a waiter between two looks
	ReleaseGrace     time.Duration
	Retention        time.Duration // 0 means the default, a negative one forever
	DeletesByDefault bool          // a release deletes the record, unless its caller says otherwise

	Errors   Errors
	Listener Listener
}

// Errors makes the errors that callers receive, and whose types they know.
type Errors interface {
	// Lost returns the error of a lock that was lost. It matches ErrLost.
	Lost(l Loss) error

	// Held returns the error that a key is held by holder. why is what ended the wait, or nil if
	// there was no wait.
	Held(key protocol.Key, holder protocol.Record, why error) error

	// Ended returns the error of a wait that why ended before any answer about the key.
	Ended(key protocol.Key, why error) error

	// Done returns the error of work that another client has done.
	Done(key protocol.Key, by protocol.Done) error

	// Missing returns the error of a key that has no record.
	Missing(key protocol.Key) error

	// Changed returns the error of a record that shows another grant, or is free.
	Changed(now protocol.Record) error

	// Unreadable says why an item is no record of the key.
	Unreadable(key protocol.Key, item protocol.Item, err error) error

	// Uncommitted says which of the caller's writes cancelled a commit.
	Uncommitted(key protocol.Key, reasons []types.CancellationReason, err error) error

	// Failed says why a request of an operation did nothing, or may have done something.
	Failed(op string, key protocol.Key, err error) error
}

// Listener receives reports. No mutex is held meanwhile.
type Listener interface {
	Report(ctx context.Context, e Event)
}

// Event is a report to a Listener. Fields that do not apply are zero.
type Event struct {
	Kind      Kind
	Key       protocol.Key
	Token     int64
	Holder    *protocol.Record // Waiting: who holds the key
	Position  int              // Waiting: in the record's queue, from 1; 0 outside
	Took      time.Duration    // duration of the requests
	Held      time.Duration    // how long the grant lasted, if no earlier event has reported it
	Remaining time.Duration    // trust that is left
	Requests  int
	Locks     int // Kept: how many are held now
	Err       error
}

// Kind is the kind of an event. The root package has the same values for its events.
type Kind string

// Kinds of events.
const (
	Waiting    Kind = "waiting" // once for each holder, and each position in the queue
	Kept       Kind = "kept"    // one lock more is held, which is renewed by itself; users have no such event
	Renewed    Kind = "renewed"
	RenewError Kind = "renew_error"
	Lost       Kind = "lost"
	Released   Kind = "released"
	Committed  Kind = "committed"
	Throttled  Kind = "throttled"
	WaitError  Kind = "wait_error" // now and then: requests of a wait fail and are repeated, or a key is left out
)

// ReportThrottled reports a request that was throttled, or in conflict.
func (e *Env) ReportThrottled(ctx context.Context, key protocol.Key, token int64, err error) {
	e.Listener.Report(ctx, Event{Kind: Throttled, Key: key, Token: token, Requests: 1, Err: err})
}

// Decode reads an item as the record of key.
func (e *Env) Decode(key protocol.Key, item protocol.Item) (protocol.Record, error) {
	return e.DecodeBy(e.Proto, key, item)
}

// DecodeBy is Decode for a row of another protocol, such as a session's.
func (e *Env) DecodeBy(proto protocol.Protocol, key protocol.Key, item protocol.Item) (protocol.Record, error) {
	r, err := proto.Decode(item)
	if err != nil {
		return r, e.Errors.Unreadable(key, item, err)
	}
	return r, nil
}

// Expires returns the time from which TTL may delete a record that is released now. It is
// zero, for never, if the record may contain the mark of done work, which would be done
// again; and with data of the caller's, unless Retention says when.
func (e *Env) Expires(data, mark bool) time.Time {
	retention := e.Retention
	if retention == 0 {
		retention = defaultRetention
		if data {
			retention = -1
		}
	}
	if retention < 0 || mark {
		return time.Time{}
	}
	return e.Wall().Add(retention)
}

// defaultRetention is how long a record without anything of the caller's is kept.
const defaultRetention = 7 * 24 * time.Hour

// keepDead is how long the row of a dead session is kept before TTL may delete it,
// whatever Retention: it contains nothing of the caller's, and proves the death to
// requests that are late. Those are late by minutes; a week also covers a clock that is
// days slow, and would let TTL delete too early.
const keepDead = 7 * 24 * time.Hour

// DeadExpires returns the time from which TTL may delete the row of a session that is marked
// dead now.
func (e *Env) DeadExpires() time.Time { return e.Wall().Add(keepDead) }
