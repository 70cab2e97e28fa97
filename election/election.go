// Package election elects one leader among processes. It uses package leasehold.
//
// A term is a *leasehold.Lock. Its context ends with the term, its token is the term's
// number, its Commit is fenced by the term, and Release resigns. The number of a term is
// greater than the number of every earlier term that leasehold granted, for as long as the
// layout keeps tokens (layout.Capabilities).
//
// At most one process believes that it leads. After a leader dies, a candidate is elected
// within the dead leader's lease plus the candidate's longest pause between two polls. A
// leader's write is fenced in three cases only: it goes through Commit, it is in a
// transaction with the term's Guards, or it carries the term's number to a target that
// compares numbers.
//
// # Stepping down
//
// StepDown asks the leader to resign. The request is stored in the leader's record, and the
// leader reads it in the reply to its next renewal. The request does not end the grant, and
// does not change how long the leader trusts its term.
//
//	leads ── StepDown ──► asked ── next renewal ──► ends its work ──► released
//	  ▲                                             (trusted, renewed)    │
//	  └────────── campaigns again, after a pause for other candidates ────┘
//
// These are the effects of failures:
//
//	the request is lost         StepDown repeats it until ctx ends; its outcome is then unknown
//	the request arrives after   the request names the grant that is to end, so no later
//	the leader has changed      leader obeys it
//	the leader has replaced     StepDown asks again. A leader replaces a grant whose write got
//	its own grant               no reply, or a hand-over that did not store the leader's value
//	the request is sent twice   the second request writes the same as the first
//	the leader is dead          ErrLeaderDead; no request is sent if the leader appears dead
//	the leader dies later       a candidate takes over after one lease, as without a request
//	the work does not end       the leader continues to lead, and its term is renewed
//	the layout cannot store a   errors.ErrUnsupported: break the term instead
//	request, or the leader's
//	lease is shared
package election

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/bridge"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/ctxmutex"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
)

// ErrNoLeader is returned if there is no leader now.
var ErrNoLeader = errors.New("election: no leader")

// Election is a leader election under one key. It is safe for concurrent use.
type Election struct {
	locks *leasehold.Client
	env   *core.Env
	key   string
	place ctxmutex.Mutex // locked while a call of Lead runs its function, so that only one function runs at a time
	asked atomic.Bool    // a client has asked this leader to step down since its last campaign
	led   atomic.Bool    // this Election has won a campaign

	paused atomic.Int64 // monotonic time, in nanoseconds, before which no campaign acquires the key
}

// New returns the election under key. It sends no request. Layouts without data cannot store
// a leader's value. If the table has a sort key, set its value in the layout, for example in
// the field SortValue of layout.Native.
func New(locks *leasehold.Client, key string) (*Election, error) {
	if locks == nil {
		return nil, errors.New("election: the client is nil: pass what leasehold.New returned")
	}
	// Acquire checks its arguments before it checks ctx. So a call with an ended context
	// checks the key, and sends nothing.
	ended, end := context.WithCancel(context.Background())
	end()
	if _, err := locks.Acquire(ended, key); !errors.Is(err, context.Canceled) {
		return nil, err
	}
	return &Election{locks: locks, env: bridge.Holds(locks).Env, key: key, place: ctxmutex.New()}, nil
}

// Campaign waits until this process leads. Observers see value, for example the address of this
// process. Campaign stores value as the record's data, overriding data in opts. If the layout has
// no data and value is not empty, the error matches errors.ErrUnsupported, and no request is sent.
//
// As in leasehold.Client.Acquire, ctx limits the wait, not the term. Campaign returns the errors of
// Acquire. With leasehold.NoWait, Campaign does not wait while another leader is live, but replaces
// a dead leader. If another client has asked this process to step down (OnStepDown), the next
// Campaign lets other candidates go first. It acquires the key only after a pause of 2 x
// Config.PollMax, or of 2 s if that is longer. Another Campaign of the same client pauses, too, if
// it has waited for that term to end.
func (e *Election) Campaign(ctx context.Context, value string, opts ...leasehold.AcquireOption) (*leasehold.Lock, error) {
	if e.asked.Swap(false) { // without this pause, the client that resigned would be the first to acquire the key again
		e.paused.Store(int64(durations.Sum(e.env.Now().Mono, decide.LetOthers(e.env.PollMax))))
	}
	if left := durations.Less(time.Duration(e.paused.Load()), e.env.Now().Mono); left > 0 {
		pause, end := e.env.UntilClosing(ctx)
		attempts.Wait(pause, left)
		end()
	}
	switch {
	case value != "":
		opts = append(slices.Clip(opts), leasehold.WithData([]byte(value)))
	case e.env.Caps.Data: // storing empty data removes the previous leader's value
		opts = append(slices.Clip(opts), leasehold.WithData(nil))
	}
	if e.led.Load() { // retry if access is denied: IAM has allowed this key before, so the denial may be temporary
		ctx = core.GoesOn(ctx, e.key)
	}
	term, err := e.locks.Acquire(ctx, e.key, opts...)
	if err == nil {
		e.led.Store(true)
	}
	return term, err
}

// Leader describes the leader that a record shows.
type Leader struct {
	Owner string // empty in layouts without owners
	Value string // value that the leader passed to Campaign; for up to a second after a hand-over, the value of the previous leader
	Token int64  // number of the term; zero if there is no leader, or if another library granted the term without a token
}

// Leader reads the leader's record once. It returns ErrNoLeader if there is no leader. If
// the leader has died, Leader still returns it until the next leader is elected. A single
// read cannot show whether a leader is live, but Observe can.
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

// Observe yields the current leader and each new leader. It yields the zero Leader if there is no
// leader, or if it finds the leader dead. If a leader renews after Observe has found it dead,
// Observe yields that leader again. The sequence ends without an error when ctx ends. Observe uses
// leasehold.Client.Watch, which determines when a holder is dead and when to return an error.
//
// Observe notices a change at its next read of the record. The pause between two reads is at
// most 1.5 x Config.PollMax. With the defaults, Observe reads about twice a second, and more
// often in the first ten seconds of a term. While DynamoDB does not answer, Observe yields
// nothing, although the leader may have changed.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		var last *seat
		for seen, err := range e.locks.Watch(ctx, e.key) {
			if err != nil {
				yield(Leader{}, err)
				return
			}
			var now seat
			if seen.Holder != nil && !seen.Dead {
				now = seat{true, leaderOf(*seen.Holder)}
			}
			again := last != nil && now == *last && (!now.taken || !seen.NewGrant)
			last = &now
			if !again && !yield(now.leader, nil) {
				return
			}
		}
	}
}

// seat is the state of an election as an observer sees it.
type seat struct {
	taken  bool
	leader Leader // zero if nothing is known about the leader
}
