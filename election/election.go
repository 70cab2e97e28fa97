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
package election

import (
	"context"
	"errors"
	"slices"

	"github.com/leasehold-go/leasehold"
)

// ErrNoLeader means nobody leads now.
var ErrNoLeader = errors.New("election: no leader")

// Election is one election. It is safe for concurrent use.
type Election struct {
	locks *leasehold.Client
	key   string
	place chan struct{} // one place: who runs Lead's function
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
	return &Election{locks: locks, key: key, place: make(chan struct{}, 1)}, nil
}

// Campaign waits until this process leads. value is what observers see,
// such as an address: it becomes the record's data, whatever opts say of that.
// Where the layout has no data and value is not empty the error matches
// errors.ErrUnsupported, and nothing is sent.
//
// ctx bounds the wait, not the term, as in leasehold.Client.Acquire, whose
// errors are Campaign's. With leasehold.NoWaitUnlessDead it asks who leads, and waits
// for no leader who lives: for a process that may do without leading.
func (e *Election) Campaign(ctx context.Context, value string, opts ...leasehold.AcquireOption) (*leasehold.Lock, error) {
	switch {
	case value != "":
		opts = append(slices.Clip(opts), leasehold.WithData([]byte(value)))
	case e.locks.Capabilities().Data: // not that of the leader before
		opts = append(slices.Clip(opts), leasehold.WithData(nil))
	}
	return e.locks.Acquire(ctx, e.key, opts...)
}

// Leader is who leads, as stored.
type Leader struct {
	Owner string // empty in layouts that name none
	Value string
	Token int64 // 0: nobody, or a peer whose grants carry none
}

// Leader reads once; a leader that died within its lease still shows, and one
// that died before it for as long as nobody else is elected: whether a holder
// lives no single read can tell, but Observe. ErrNoLeader.
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
