package election

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/bridge"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

var (
	// ErrAsked is the cause with which the context of Lead's function ends if another client
	// has asked this leader to step down. The process still leads at that moment.
	ErrAsked = errors.New("election: asked to step down")

	// ErrLeaderDead is returned by StepDown if the leader is dead, and so cannot read a
	// request to step down.
	ErrLeaderDead = errors.New("election: the leader appears dead: the next candidate takes over")
)

// StepDown asks the leader to resign, and returns nil once that leader no longer leads. The leader
// reads the request at its next renewal, ends its work, and then resigns. StepDown waits until the
// leader has resigned or ctx ends. A leader never resigns if it uses neither Lead nor OnStepDown,
// if its version of leasehold has no StepDown, or if its function does not return. To end the term
// of such a leader immediately, use leasehold.Client.Break.
//
// The request concerns one term: a late request does not affect a later leader, and asking
// twice has the same effect as asking once. StepDown returns ErrNoLeader if there is no
// leader. If the leader appears dead by the time in its record, StepDown returns
// ErrLeaderDead without a wait. Otherwise it observes the record, and returns ErrLeaderDead
// if the leader does not renew for the length of one lease. Layouts other than layout.Native,
// and leaders under a shared lease, do not support requests: the error matches
// errors.ErrUnsupported. StepDown returns leasehold.ErrUnknownOutcome if ctx ended before the
// request was answered.
func (e *Election) StepDown(ctx context.Context) error {
	if e.env.Native == nil {
		return e.env.Errors.Unsupported("request to step down: break the term instead")
	}
	r, err := e.locks.Get(ctx, e.key)
	switch {
	case errors.Is(err, leasehold.ErrNotFound), err == nil && r.Released:
		return ErrNoLeader
	case err != nil:
		return err
	case r.Grant == "", r.Session != "":
		return e.env.Errors.Unsupported("request to step down for a leader under a shared lease, or of another library: break the term instead")
	case decide.LooksDead(r.WrittenAt, r.Lease, e.env.Wall()):
		return ErrLeaderDead
	}
	return e.env.Call(ctx, "step down", r.Key, func(ctx context.Context) error {
		for range mostReplaced {
			if err := ask(ctx, e.env, r); err != nil {
				return e.env.Errors.Failed("step down", r.Key, attempts.Joined(attempts.Cause(ctx), err))
			}
			replaced, err := e.awaitEnd(ctx, r)
			if replaced == nil {
				return err
			}
			r = *replaced
		}
		return nil
	})
}

// mostReplaced is the largest number of grants of one leader that StepDown asks to resign. After so
// many, the leader has not replaced its grant: its terms end before their first renewal, and the
// term that StepDown was to end is over.
const mostReplaced = 5

// ask sends the request to step down, again and again until DynamoDB replies. It returns nil if
// the request was applied. It also returns nil if DynamoDB rejected the request: the record then
// probably contains another grant, and awaitEnd finds out whether it does.
func ask(ctx context.Context, env *core.Env, r leasehold.Record) error {
	w := env.Native.Ask(protocol.Hold{Key: r.Key, Owner: r.Owner, Grants: []string{r.Grant}, Token: r.Token}, env.Owner, env.Wall())
	silent := false
	err := env.Requests.Repeat(ctx, func() error {
		reply := env.Requests.Write(ctx, w, attempts.Limit)
		if reply.Effect == decide.Applied || reply.Cause == decide.ConditionFailed {
			return nil
		}
		silent = silent || reply.Effect == decide.Unknown
		return &attempts.Failure{Cause: reply.Cause, Err: reply.Err}
	}, func(*attempts.Failure) error { return nil })
	if silent && err != nil {
		return errors.Join(leasehold.ErrUnknownOutcome, err)
	}
	return err
}

// awaitEnd waits until the leader has ended the grant of r, and then returns nil. Before its first
// renewal, a leader may replace its grant without having read the request (see the package
// comment). Then awaitEnd returns the record with the new grant, and the caller asks again. After a
// renewal, a new grant means that the leader has resigned and was elected again, so awaitEnd
// returns nil.
func (e *Election) awaitEnd(ctx context.Context, r leasehold.Record) (replaced *leasehold.Record, _ error) {
	// renewed is true if the leader has renewed its grant. A renewal changes Version and WrittenAt.
	// A hand-over changes Version too, but until the first renewal WrittenAt is at most a second
	// after GrantedAt.
	renewed := r.Version != r.Grant && r.WrittenAt.Sub(r.GrantedAt) > time.Second
	for seen, err := range e.locks.Watch(ctx, e.key) {
		switch {
		case err != nil:
			return nil, err
		case !renewed && seen.Holder != nil && seen.Holder.Owner == r.Owner && seen.Holder.Token > r.Token:
			return seen.Holder, nil
		case seen.Holder == nil || seen.Holder.Grant != r.Grant:
			return nil, nil
		case seen.Dead:
			return nil, ErrLeaderDead
		}
		renewed = renewed || seen.Holder.Version != r.Version
	}
	return nil, attempts.Cause(ctx)
}

// OnStepDown registers fn for a term that Campaign has returned; a term of Lead needs no fn. The
// function is called at most once, when a client asks the leader to step down. It must not block,
// because it is called while the reply to a renewal is handled. The leader should then end its work
// and release the term. OnStepDown returns an error if fn is nil, or if term was not granted to
// this Election's client.
func (e *Election) OnStepDown(term *leasehold.Lock, fn func()) error {
	if fn == nil {
		return fmt.Errorf("election: step down from %s: the function is nil", e.key)
	}
	grant := bridge.Grant(e.locks, term)
	if grant == nil || grant.Key() != e.env.Proto.Complete(leasehold.Key{Partition: e.key}) {
		return fmt.Errorf("election: step down from %s: the lock is no term of this election: pass what Campaign returned", e.key)
	}
	grant.OnAsked(func() {
		e.asked.Store(true)
		fn()
	})
	return nil
}
