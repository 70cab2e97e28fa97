package election

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/seek"
)

var (
	// ErrAsked is why the context of Lead's function ended: somebody has asked this leader to
	// step down. It still leads.
	ErrAsked = errors.New("election: asked to step down")

	// ErrLeaderDead means that nobody is there to be asked.
	ErrLeaderDead = errors.New("election: the leader looks dead: the next candidate takes over")
)

// inside is what an election needs of what is inside a client.
type inside interface {
	Seeking() *seek.Client
	OnAsked(l *leasehold.Lock, key string, fn func()) (ok bool)
	Answered() leasehold.AcquireOption // DynamoDB has answered an earlier call, which this one goes on from
	Enter(ctx context.Context) (until context.Context, leave func(), ok bool)
	Unsupported(feature string) error
	AfterClose(op string, key leasehold.Key) error
	Failed(op string, key leasehold.Key, err error) error
}

// StepDown asks the leader to resign, and returns nil once it does not lead any more. A
// leader hears it at its next renewal, and ends its work first: until ctx ends it is waited
// for, however long that takes. A leader stays if it does not listen (it leads by neither
// Lead nor OnStepDown, or is of an older version), or if its function goes on:
// leasehold.Client.Break takes its term at once.
//
// The request is of one term. If it is late it asks no later leader; asking twice is asking
// once. ErrNoLeader; ErrLeaderDead, at once if the leader looks dead by the time in its
// record, or else once it was watched for its lease. Layouts other than layout.Native, and
// leaders under a shared lease, cannot be asked: the error matches errors.ErrUnsupported.
// leasehold.ErrUnknownOutcome if ctx ended before the request was answered.
func (e *Election) StepDown(ctx context.Context) error {
	s := e.in.Seeking()
	proto, can := s.Proto.(protocol.Native)
	if !can {
		return e.in.Unsupported("request to step down: break the term instead")
	}
	r, err := e.locks.Get(ctx, e.key)
	switch {
	case errors.Is(err, leasehold.ErrNotFound), err == nil && r.Released:
		return ErrNoLeader
	case err != nil:
		return err
	case r.Grant == "", r.Session != "":
		return e.in.Unsupported("request to step down for a leader under a shared lease, or of another library: break the term instead")
	case decide.LooksDead(r.WrittenAt(), r.Lease, s.Wall()):
		return ErrLeaderDead
	}
	until, leave, ok := e.in.Enter(ctx)
	if !ok {
		return e.in.AfterClose("step down", r.Key)
	}
	defer leave()
	for {
		if err := ask(until, s, proto, r); err != nil {
			return e.in.Failed("step down", r.Key, attempts.Joined(attempts.Cause(until), err))
		}
		replaced, err := e.awaitEnd(ctx, r)
		if replaced == nil {
			return err
		}
		r = *replaced
	}
}

// ask sends the request until it is answered. A condition that fails says that another
// grant is there, as far as one request can tell.
func ask(ctx context.Context, s *seek.Client, proto protocol.Native, r leasehold.Record) error {
	w := proto.Ask(protocol.Hold{Key: r.Key, Owner: r.Owner, Grants: []string{r.Grant}, Token: r.Token}, s.Owner, s.Wall())
	silent := false
	err := s.Requests.Repeat(ctx, func() error {
		reply := s.Requests.Write(ctx, w, attempts.Limit)
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

// awaitEnd waits until the record shows the grant of r no more. It returns the grant by which
// its holder has replaced it, if that is what happened: a leader does so whose grant had no
// answer, or that was handed the key and has a value to store, and it has heard of nothing.
// One that has renewed its grant replaces it no more: it has resigned, and was elected again.
func (e *Election) awaitEnd(ctx context.Context, r leasehold.Record) (replaced *leasehold.Record, _ error) {
	renewed := wasRenewed(r)
	for seen, err := range e.locks.Watch(ctx, e.key) {
		switch {
		case err != nil:
			return nil, err
		case !renewed && seen.Holder != nil && seen.Holder.Grant != r.Grant && seen.Holder.Owner == r.Owner && seen.Holder.Token == r.Token+1:
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

// wasRenewed reports whether a record shows that it was written after its grant. A hand-over
// writes a version that is not the grant's as well, but at one time by one clock.
func wasRenewed(r leasehold.Record) bool {
	return r.Version != r.Grant && r.WrittenAt().Sub(r.GrantedAt) > time.Second
}

// OnStepDown has fn called, once and on a goroutine that must not wait, if the leader of a
// term is asked to step down: for terms of Campaign, as Lead listens by itself. Whoever is
// asked ends what it does, and releases the term. It returns an error, and calls fn never, if
// fn is nil or if term is no term that this Election's client was granted.
func (e *Election) OnStepDown(term *leasehold.Lock, fn func()) error {
	if fn == nil {
		return fmt.Errorf("election: step down from %s: the function is nil", e.key)
	}
	heard := func() {
		e.asked.Store(true)
		fn()
	}
	if !e.in.OnAsked(term, e.key, heard) {
		return fmt.Errorf("election: step down from %s: the lock is no term of this election: pass what Campaign returned", e.key)
	}
	return nil
}

// letOthers waits until every other candidate has looked. Who has resigned would be the first
// to ask.
func (e *Election) letOthers(ctx context.Context) {
	s := e.in.Seeking()
	longest := s.PollMax
	if s.Line != nil {
		longest = max(longest, decide.LongestLinePause)
	}
	pause, cancel := context.WithTimeout(ctx, durations.Times(longest, 2))
	defer cancel()
	<-pause.Done()
}
