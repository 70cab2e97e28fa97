package leaseholdgocron

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/go-co-op/gocron/v2"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
)

// ErrNotLeader is returned by IsLeader if this process does not lead. gocron then skips the
// run.
var ErrNotLeader = errors.New("leaseholdgocron: this process does not lead")

// Elector implements gocron.Elector with an election among the processes. It is safe for
// concurrent use.
type Elector struct {
	election *election.Election
	value    string
	term     atomic.Pointer[leasehold.Lock] // latest term, which may have ended; nil before the first term
}

var _ gocron.Elector = (*Elector)(nil)

// NewElector returns an Elector for the election under key: see election.New. It sends no request.
// The Elector cannot lead before Run is called. While this process leads, observers see value, such
// as its address. Use "" in layouts whose records have no data.
func NewElector(locks *leasehold.Client, key, value string) (*Elector, error) {
	e, err := election.New(locks, key)
	if err != nil {
		return nil, err
	}
	return &Elector{election: e, value: value}, nil
}

// Run campaigns and leads, term after term, until ctx ends. It then resigns and returns an error
// that matches context.Cause(ctx). If election.Election.Lead fails, Run returns that error. Shut
// the scheduler down before ctx ends. If ctx ends first, jobs that still run continue after another
// process has become the leader. They also continue if another client asks this process to step
// down (election.Election.StepDown): Run resigns at once, and campaigns again.
func (e *Elector) Run(ctx context.Context) error {
	return e.election.Lead(ctx, e.value, func(ctx context.Context, term *leasehold.Lock) error {
		e.term.Store(term)
		<-ctx.Done()
		return nil
	})
}

// IsLeader returns nil while this process leads, and an error that matches ErrNotLeader
// otherwise. It sends no request. It compares the clock with the time until which the term
// is trusted. So the result is correct even if a suspended process has only just resumed.
func (e *Elector) IsLeader(context.Context) error {
	term := e.term.Load()
	if term == nil {
		return ErrNotLeader
	}
	if err := term.Err(); err != nil {
		return errors.Join(ErrNotLeader, err)
	}
	return nil
}

// Term returns the term in which this process leads, or false if it does not lead. The
// term's method Bind returns a context for a job: the context ends when the term is lost.
// The term's token and its method Commit fence the job's writes.
func (e *Elector) Term() (term *leasehold.Lock, leads bool) {
	term = e.term.Load()
	return term, term != nil && term.Err() == nil
}
