package leaseholdgocron

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/go-co-op/gocron/v2"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
)

// ErrNotLeader means that this process does not lead: gocron skips the run.
var ErrNotLeader = errors.New("leaseholdgocron: this process does not lead")

// Elector is a gocron.Elector. It is safe for concurrent use.
type Elector struct {
	election *election.Election
	value    string
	term     atomic.Pointer[leasehold.Lock] // the last one; nil: none yet
}

var _ gocron.Elector = (*Elector)(nil)

// NewElector returns an Elector that campaigns under key, as election.New. It sends
// nothing, and does not lead before Run. value is what observers of the election see, such
// as an address; "" in layouts without data.
func NewElector(locks *leasehold.Client, key, value string) (*Elector, error) {
	e, err := election.New(locks, key)
	if err != nil {
		return nil, err
	}
	return &Elector{election: e, value: value}, nil
}

// Run campaigns, and leads for as long as it can, term after term, until ctx ends: then it
// resigns and returns the cause. It returns the errors of election.Election.Lead. Shut the
// scheduler down before ctx ends, or its last runs go on beside the next leader.
func (e *Elector) Run(ctx context.Context) error {
	return e.election.Lead(ctx, e.value, func(ctx context.Context, term *leasehold.Lock) error {
		e.term.Store(term)
		<-ctx.Done()
		return nil
	})
}

// IsLeader returns nil while this process leads, and an error that matches ErrNotLeader
// while it does not. Nothing is sent. It looks at the clock, so that it is right
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

// Term returns the term in which this process leads. Its Bind returns a context for a
// job that ends when the term is lost; its token and its Commit fence what the job writes.
func (e *Elector) Term() (term *leasehold.Lock, leads bool) {
	term = e.term.Load()
	return term, term != nil && term.Err() == nil
}
