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

// Env contains one client's table, settings, clocks and sender of requests. All internal types of
// the client share one Env. Its fields do not change after leasehold.New.
type Env struct {
	machine.Machine // clocks and random numbers
	*Running

	Table    string
	Requests *attempts.Sender
	Proto    protocol.Protocol
	Native   protocol.Native     // same value as Proto if the layout is Native; otherwise nil
	Caps     layout.Capabilities // capabilities of the layout
	Name     string              // name of the owner, without the client id
	Owner    string              // owner of the client's grants without a session: Name, followed by the client id
	Log      *slog.Logger

	Lease            time.Duration // default lease of grants and sessions
	PollMin, PollMax time.Duration // shortest and longest pause between two reads by a waiter
	ReleaseGrace     time.Duration
	Retention        time.Duration // time before TTL may delete a released record; zero means the default, and a negative value means that TTL never deletes it
	DeletesByDefault bool          // a release deletes the record, unless the caller of the release asks to keep it

	Errors Errors
	Report func(ctx context.Context, e Event) // receives the events of the client; its callers must not hold a mutex
	Kept   func(locks int)                    // called when the client holds one more lock without a session; locks is the number of locks that it holds now
}

// Errors makes the errors whose types are part of the public API.
type Errors interface {
	// Lost returns the error for a lost lock. The error matches ErrLost.
	Lost(l Loss) error

	// Held returns the error of a call that did not acquire the key because the key is held. The
	// parameter "holder" is the record of the key. The parameter "why" is the reason why the call
	// stopped waiting, or nil if it did not wait.
	Held(key protocol.Key, holder protocol.Record, why error) error

	// Done returns the error of a call whose work a client has already marked as done. The
	// parameter "by" is the mark.
	Done(key protocol.Key, by protocol.Done) error

	// Missing returns the error of a call that needs a record of key, if the table has none.
	Missing(key protocol.Key) error

	// Changed returns the error for a call that expected a particular grant. The parameter "now" is
	// the record, which shows another grant or a free key.
	Changed(now protocol.Record) error

	// Unreadable returns the error for an item that the layout cannot decode as the record of key.
	// The parameter err is the error of the decoder.
	Unreadable(key protocol.Key, item protocol.Item, err error) error

	// Unsupported returns the error of a call that needs a feature that the client's layout does
	// not have.
	Unsupported(feature string) error

	// Uncommitted returns the error of a commit that DynamoDB has cancelled because some of
	// the caller's own writes failed.
	Uncommitted(key protocol.Key, reasons []types.CancellationReason, err error) error

	// Failed returns the error of the operation op after one of its requests has failed with err.
	// The returned error does not show whether a write of the operation was applied.
	Failed(op string, key protocol.Key, err error) error
}

// Event is an event that a client reports. A field is zero if it does not apply to the kind of
// event.
type Event struct {
	Kind      Kind
	Key       protocol.Key
	Token     int64
	Holder    *protocol.Record // record of the key's holder, for Waiting
	Position  int              // position of the waiter in the record's queue, for Waiting; 1 is the head, and 0 means not in the queue
	Took      time.Duration    // time that the requests took, from the start of the first to the end of the last
	Held      time.Duration    // duration of the grant, from its start to its end; zero if an earlier event has reported it
	Remaining time.Duration    // time for which the holder still trusts the lock
	Requests  int
	Err       error
}

// Kind is the kind of an event. The kinds of the root package's events have the same
// values.
type Kind string

// Kinds of events.
const (
	Waiting    Kind = "waiting" // a waiter has seen a new holder, or has a new position in the queue of the record
	Renewed    Kind = "renewed"
	RenewError Kind = "renew_error"
	Lost       Kind = "lost"
	Released   Kind = "released"
	Committed  Kind = "committed"
	Throttled  Kind = "throttled"
	WaitError  Kind = "wait_error" // requests of a waiter fail and are repeated; at most one event a minute. Or a waiter has given up a key, because its record is damaged
)

// ReportThrottled reports an event for a request that was throttled, or in conflict with a
// transaction.
func (e *Env) ReportThrottled(ctx context.Context, key protocol.Key, token int64, err error) {
	e.Report(ctx, Event{Kind: Throttled, Key: key, Token: token, Requests: 1, Err: err})
}

// Decode decodes an item as the record of key, in the client's layout.
func (e *Env) Decode(key protocol.Key, item protocol.Item) (protocol.Record, error) {
	return e.DecodeBy(e.Proto, key, item)
}

// DecodeBy decodes an item as Decode does, but uses the protocol proto instead of the client's
// own. For example, proto may be the protocol of session rows.
func (e *Env) DecodeBy(proto protocol.Protocol, key protocol.Key, item protocol.Item) (protocol.Record, error) {
	r, err := proto.Decode(item)
	if err != nil {
		return r, e.Errors.Unreadable(key, item, err)
	}
	return r, nil
}

// Expires returns the time from which TTL may delete a record that is released now; zero means
// never. A record with a done mark never expires: otherwise a client would redo the work. A record
// with the caller's data never expires if Retention is zero.
func (e *Env) Expires(data, mark bool) time.Time {
	if mark || e.Retention < 0 || data && e.Retention == 0 {
		return time.Time{}
	}
	return e.Wall().Add(cmp.Or(e.Retention, defaultRetention))
}

// defaultRetention is the retention if Retention is zero: TTL may delete a released record after
// this time, unless the record contains data of the caller or a done mark.
const defaultRetention = 7 * 24 * time.Hour

// keepDead is how long TTL must keep the row of a dead session, so that DynamoDB rejects late
// requests of the session. The network delays requests by minutes at most. But if a client's wall
// clock is days slow, the row is deleted days early.
const keepDead = 7 * 24 * time.Hour

// DeadExpires returns the time from which TTL may delete the row of a session that the
// client now marks as dead.
func (e *Env) DeadExpires() time.Time { return e.Wall().Add(keepDead) }
