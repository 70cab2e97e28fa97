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

// Client has the settings and the state that all calls of one client share.
type Client struct {
	Requests *attempts.Sender
	Proto    protocol.Protocol
	Owner    string // for grants without a session
	Now      func() decide.Instant
	Wall     func() time.Time
	Chance   func() float64 // in [0, 1): for pauses, so that clients do not retry together
	Observer *liveness.Observer
	Sessions Sessions // nil if each grant is renewed by itself
	Local    *LocalQueues
	Queue    protocol.Native // writes to the queues in records; nil in layouts without one
	Lease    time.Duration   // the client's default; decides for how long a queue is suspended

	// Holds reports whether the client holds that grant of the key. Through an outage it
	// may, though the record has not changed for a lease.
	Holds func(key protocol.Key, grant string) bool

	PollMin, PollMax time.Duration
	Expires          func() time.Time // when TTL may delete a record that is freed now, and may contain data and a mark

	Detach     func(func())          // runs a function that Close waits for
	AwaitGrace func(<-chan struct{}) // waits for that, but not for longer than the release grace
	GiveBack   func([]Holding)       // releases them, within the release grace
	Closing    context.Context       // ends when the client closes; its cause ends every wait
	Errors     Errors
	Listener   Listener

	Unsettled unsettled.Attempts[protocol.Key] // grant attempts whose outcome is unknown
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
	GiveBack() // releases it, as its caller has left
}

// Errors makes the errors that callers receive.
type Errors interface {
	// Held returns the error of a key that holder has. why ended the wait; nil if there was no wait.
	Held(key protocol.Key, holder protocol.Record, why error) error

	// Failed returns the error of an operation whose requests are not repeated.
	Failed(op string, key protocol.Key, err error) error

	// Ended returns the error of a wait that why ended before any answer about the key.
	Ended(key protocol.Key, why error) error

	// Done returns the error of work that was done by somebody else.
	Done(key protocol.Key, by protocol.Done) error

	// Missing returns the error of a key without a record.
	Missing(key protocol.Key) error
}

// Listener receives reports while a call waits.
type Listener interface {
	// Waiting reports, once for each grant, that the call waits for it, and each position in
	// the record's queue, counted from 1; 0 outside the queue. If undo is not nil, a listener
	// that panics must call it: its caller is gone then.
	Waiting(ctx context.Context, key protocol.Key, holder *protocol.Record, place int, undo func())

	// Throttled reports requests that were throttled.
	Throttled(ctx context.Context, key protocol.Key, requests int, err error)

	// Failing reports, now and then, that requests fail and are repeated, and that a key is
	// left out because its record is damaged.
	Failing(ctx context.Context, key protocol.Key, err error)
}

// HasQueue reports whether a record has a queue that its release serves: the layout has
// queues, and this one is not suspended.
func (c *Client) HasQueue(r protocol.Record) bool {
	return c.Queue != nil && !decide.IsSuspended(r.NoQueueUntil, c.Wall(), c.Lease)
}

// Pauses are the pauses between requests of a wait that fail.
func (c *Client) Pauses() attempts.Pauses {
	return attempts.Pauses{Least: c.PollMin, Most: 2 * time.Second}
}

// since returns the time that a call has taken, for error messages.
func (c *Client) since(began decide.Instant) time.Duration {
	return (c.Now().Mono - began.Mono).Round(100 * time.Millisecond)
}

// write sends w once, and does not retry. values has no end.
func (c *Client) write(values context.Context, w *protocol.Write) {
	c.Requests.Write(values, w, attempts.Limit)
}
