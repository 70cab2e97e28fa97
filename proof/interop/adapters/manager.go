package adapters

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
)

// LeadManager runs a manager while this process leads. A manager can start only once, so
// LeadManager calls newManager for each term of leadership. The option LeaderElection of these
// managers must be off.
func LeadManager(ctx context.Context, e *election.Election, name string, newManager func() (manager.Manager, error)) error {
	return e.Lead(ctx, name, func(ctx context.Context, _ *leasehold.Lock) error {
		mgr, err := newManager()
		if err != nil {
			return err
		}
		return mgr.Start(ctx) // returns when the term ends
	})
}
