package seek

import (
	"context"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/localqueue"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/unsettled"
)

// Client is what the calls of one client that seek keys have in common.
type Client struct {
	Requests *attempts.Sender
	Proto    protocol.Protocol
	Owner    string // for grants without a session
	Now      func() decide.Instant
	Wall     func() time.Time
	Chance   func() float64 // in [0, 1): for pauses, so that clients do not retry together
	Observer *liveness.Observer
	Sessions Sessions // nil: grants are renewed one by one
	Local    *LocalQueues
	Queue    protocol.Native // of the records, in which waiters of all clients stand; nil in layouts without one
	Lease    time.Duration   // of the client's locks; says for how long a queue is suspended

	// Holds reports whether the client holds that grant of the key. Through an outage it
	// may, though the record has not changed for a lease.
	Holds func(key protocol.Key, grant string) bool

	PollMin, PollMax time.Duration
	Expires          func() time.Time // when TTL may delete a record that is freed now, and may contain data and a mark

	Detach     func(func())          // runs a function that Close waits for
	AwaitGrace func(<-chan struct{}) // waits for that, but not for longer than the release grace
	GiveBack   func([]Holding)       // releases them, within the release grace
	Closing    context.Context       // ends when the client closes, with what ended a wait then
	Errors     Errors
	Listener   Listener

	Unsettled unsettled.Attempts[protocol.Key] // to be granted
	Left      Left
}

// Sessions are the shared leases of a client, one at a time.
type Sessions interface {
	// Session returns the session to be granted under, and begins one if none is trusted.
	// The error is an *attempts.Failure.
	Session(ctx context.Context) (Session, error)

	// CheckSoon is called when attempts for key were given up. While their session is
	// renewed, no lease frees the key.
	CheckSoon(key protocol.Key)
}

// Session is a shared lease.
type Session interface {
	Names() (id, owner string)
	Lease() *lease.Lease
}

// Holding is a grant in the hands of the client, which renews it.
type Holding interface {
	localqueue.Grant
	Lease() *lease.Lease
	GiveBack() // releases it: nobody wants it any more
}

// Errors makes the errors that callers are told.
type Errors interface {
	// Held says that holder has the key. why is what ended the wait, nil if there was none.
	Held(key protocol.Key, holder protocol.Record, why error) error

	// Failed says why the requests of an operation are not repeated.
	Failed(op string, key protocol.Key, err error) error

	// Ended says what ended the wait for a key of which nothing is known.
	Ended(key protocol.Key, why error) error

	// Done says that what the key is wanted for is done.
	Done(key protocol.Key, by protocol.Done) error

	// Missing says that the key has no record.
	Missing(key protocol.Key) error
}

// Listener is told what happens meanwhile.
type Listener interface {
	// Waiting tells once of each grant that is waited for, and of each place in the
	// record's queue, from 1; 0: none. undo, if it is not nil, is for a listener that
	// panics: the caller is gone then.
	Waiting(ctx context.Context, key protocol.Key, holder *protocol.Record, place int, undo func())

	// Throttled tells of requests that were throttled.
	Throttled(ctx context.Context, key protocol.Key, requests int, err error)

	// Failing tells, now and then, that requests fail and are repeated; and of a key that
	// is left out because its record is damaged.
	Failing(ctx context.Context, key protocol.Key, err error)
}

// HasQueue reports whether waiters of other clients stand in the queue of a record, and
// its release hands the key to them: the client takes part, and the record does not say
// that the queue is suspended.
func (c *Client) HasQueue(r protocol.Record) bool {
	return c.Queue != nil && !decide.IsSuspended(r.NoQueueUntil, c.Wall(), c.Lease)
}

// Pauses are the pauses between requests of a wait that fail.
func (c *Client) Pauses() attempts.Pauses {
	return attempts.Pauses{Least: c.PollMin, Most: 2 * time.Second}
}

// since is how long a call that began then has taken, for people.
func (c *Client) since(began decide.Instant) time.Duration {
	return (c.Now().Mono - began.Mono).Round(100 * time.Millisecond)
}

// write sends w once, and does not retry. values has no end.
func (c *Client) write(values context.Context, w *protocol.Write) {
	c.Requests.Write(values, w, attempts.Limit)
}
