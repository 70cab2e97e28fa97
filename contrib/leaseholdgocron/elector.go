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

// Elector implements gocron.Elector by an election of leasehold. It is safe for concurrent
// use.
type Elector struct {
	election *election.Election
	value    string
	term     atomic.Pointer[leasehold.Lock] // the last term; nil before the first term
}

var _ gocron.Elector = (*Elector)(nil)

// NewElector returns an Elector that campaigns under key, like election.New. It sends no
// request, and does not lead before Run is called. Observers of the election see value, for
// example an address; use "" in layouts without data.
func NewElector(locks *leasehold.Client, key, value string) (*Elector, error) {
	e, err := election.New(locks, key)
	if err != nil {
		return nil, err
	}
	return &Elector{election: e, value: value}, nil
}

// Run campaigns and leads, term after term, until ctx ends. It then resigns and returns the
// cause of ctx's end. It also returns the errors of election.Election.Lead. Shut the
// scheduler down before ctx ends: otherwise its last runs continue after another process
// has become the leader.
func (e *Elector) Run(ctx context.Context) error {
	return e.election.Lead(ctx, e.value, func(ctx context.Context, term *leasehold.Lock) error {
		e.term.Store(term)
		<-ctx.Done()
		return nil
	})
}

// IsLeader returns nil while this process leads, and an error that matches ErrNotLeader
// otherwise. It sends no request. It reads the clock, so that its answer is correct even
// immediately after a pause of the process.
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

// Term returns the term in which this process leads. Its Bind returns a context for a job
// that ends when the term is lost. Its token and its Commit fence the job's writes.
func (e *Elector) Term() (term *leasehold.Lock, leads bool) {
	term = e.term.Load()
	return term, term != nil && term.Err() == nil
}
