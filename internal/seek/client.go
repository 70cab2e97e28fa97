package seek

import (
	"context"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/localqueue"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/unsettled"
)

// Keys is what one client knows of keys that it does not hold: who waits for them here, and
// which of its attempts may still be granted them. Those who seek a key and those who
// release one share it.
type Keys struct {
	*core.Env
	Local     *LocalQueues
	Unsettled unsettled.Attempts[protocol.Key] // grant attempts whose outcome is unknown
	Left      Left
}

// NewKeys returns a Keys that knows nothing yet.
func NewKeys(env *core.Env) *Keys {
	return &Keys{Env: env, Local: NewLocalQueues(env.PollMin, env.PollMax)}
}

// Client seeks keys for the calls of one client.
type Client struct {
	*Keys
	Observer *liveness.Observer
	keeper   Keeper
}

// New returns a client whose grants keeper keeps.
func New(keys *Keys, observer *liveness.Observer, keeper Keeper) *Client {
	return &Client{Keys: keys, Observer: observer, keeper: keeper}
}

// Keeper keeps what was granted to a client.
type Keeper interface {
	// Holds reports whether the client holds that grant of the key. Through an outage it
	// may, though the record has not changed for a lease.
	Holds(key protocol.Key, grant string) bool

	// GiveBack releases holdings whose caller has left, within the release grace.
	GiveBack([]Holding)

	// Shares reports whether the client's grants are renewed together, as a session.
	Shares() bool

	// Session returns the session to be granted under, and begins one if none is trusted; nil
	// if grants are renewed one by one. The error is an *attempts.Failure.
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

// HasQueue reports whether a record has a queue that its release serves: the layout has
// queues, and this one is not suspended.
func (k *Keys) HasQueue(r protocol.Record) bool {
	return k.Native != nil && !decide.IsSuspended(r.NoQueueUntil, k.Wall(), k.Lease)
}

// Pauses are the pauses between requests of a wait that fail.
func (k *Keys) Pauses() attempts.Pauses {
	return attempts.Pauses{Least: k.PollMin, Most: 2 * time.Second}
}

// since returns the time that a call has taken, for error messages.
func (k *Keys) since(began decide.Instant) time.Duration {
	return (k.Now().Mono - began.Mono).Round(100 * time.Millisecond)
}

// write sends w once, and does not retry. values has no end.
func (k *Keys) write(values context.Context, w *protocol.Write) {
	k.Requests.Write(values, w, attempts.Limit)
}
