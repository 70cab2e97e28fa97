// Package election elects one leader among processes, on package leasehold.
//
// A term is a *leasehold.Lock: its context is the term's, its token the term's
// number, its Commit is fenced by the term, and Release resigns. The number of
// a term is greater than that of every earlier term that leasehold granted, for
// as long as the layout keeps tokens (layout.Capabilities).
//
// At most one process believes that it leads. A leader that died is replaced
// within its lease and one longest poll of a candidate. What a leader writes
// elsewhere is fenced by the term only if it goes through Commit, or carries
// the term's Guards or number.
//
// # Stepping down
//
// StepDown asks the leader to resign. It is a word in its record, which the reply to its next
// renewal shows: nothing is broken, and no trust depends on it.
//
//	leads ── StepDown ──► asked ── next renewal ──► ends its work ──► released
//	  ▲                                             (trusted, renewed)    │
//	  └────────── campaigns again, once every other candidate has looked ─┘
//
// What each failure does:
//
//	the request is lost         repeated until its caller leaves: the outcome is unknown then
//	it comes after the leader   it names the grant that it was for, and lands on no other; nor
//	has changed                 does a later leader take it for its own
//	the leader has replaced     that grant is asked, too: as it had no answer, or was handed to
//	its own grant               it without its value
//	it is sent twice            once is enough: the second writes the same
//	the leader is dead          ErrLeaderDead: nobody is asked
//	the leader dies after it    taken over one lease later, as without it
//	its work does not end       it leads on, and is renewed
//	the layout has no word for  errors.ErrUnsupported: break the term instead
//	it, or a lease is shared
package election

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/bridge"
)

// ErrNoLeader means nobody leads now.
var ErrNoLeader = errors.New("election: no leader")

// Election is one election. It is safe for concurrent use.
type Election struct {
	locks *leasehold.Client
	in    inside
	key   string
	place chan struct{} // one place: who runs Lead's function
	asked atomic.Bool   // to step down, since the last campaign
	led   atomic.Bool   // a campaign was won
}

// New returns the election under key. It sends nothing. Layouts without data
// cannot carry a value. In a table with a sort key the layout has to name its
// value.
func New(locks *leasehold.Client, key string) (*Election, error) {
	if locks == nil {
		return nil, errors.New("election: the client is nil: pass what leasehold.New returned")
	}
	// Arguments are checked before ctx: with one that has ended nothing is sent.
	ended, end := context.WithCancel(context.Background())
	end()
	if _, err := locks.Acquire(ended, key); !errors.Is(err, context.Canceled) {
		return nil, err
	}
	return &Election{locks: locks, in: bridge.Inside(locks).(inside), key: key, place: make(chan struct{}, 1)}, nil
}

// Campaign waits until this process leads. value is what observers see,
// such as an address: it becomes the record's data, whatever opts say of that.
// Where the layout has no data and value is not empty the error matches
// errors.ErrUnsupported, and nothing is sent.
//
// ctx bounds the wait, not the term, as in leasehold.Client.Acquire, whose
// errors are Campaign's. With leasehold.NoWait it does not wait for a live leader, and
// replaces a dead one: for a process that need not lead. After a term that was
// asked for (OnStepDown) it first lets every other candidate look.
func (e *Election) Campaign(ctx context.Context, value string, opts ...leasehold.AcquireOption) (*leasehold.Lock, error) {
	if e.asked.Swap(false) {
		e.letOthers(ctx)
	}
	switch {
	case value != "":
		opts = append(slices.Clip(opts), leasehold.WithData([]byte(value)))
	case e.in.Seeking().Observer.Caps.Data: // not that of the leader before
		opts = append(slices.Clip(opts), leasehold.WithData(nil))
	}
	if e.led.Load() { // a denial may pass: the policy has allowed it before
		opts = append(slices.Clip(opts), e.in.Answered())
	}
	term, err := e.locks.Acquire(ctx, e.key, opts...)
	if err == nil {
		e.led.Store(true)
	}
	return term, err
}

// Leader is who leads, as stored.
type Leader struct {
	Owner string // empty in layouts that name none
	Value string // with Config.Line, for up to a second that of the leader before
	Token int64  // 0: nobody, or a peer whose grants carry none
}

// Leader reads once. A leader that has died still shows until the next is elected: no
// single read can tell whether it lives, but Observe can. ErrNoLeader if nobody leads.
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	r, err := e.locks.Get(ctx, e.key)
	switch {
	case errors.Is(err, leasehold.ErrNotFound), err == nil && r.Released:
		return Leader{}, ErrNoLeader
	case err != nil:
		return Leader{}, err
	}
	return leaderOf(r), nil
}

func leaderOf(r leasehold.Record) Leader {
	return Leader{Owner: r.Owner, Value: string(r.Data), Token: r.Token}
}
