package hold

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
)

// stepDown asks the leader to resign, and waits until it has.
func (c *command) stepDown(cmd *cobra.Command, key string) error {
	return c.OnTable(cmd, leasehold.Config{}, func(ctx context.Context, t *store.Table) error {
		e, err := election.New(t.Locks, key)
		if err != nil {
			return err
		}
		c.Say.Note("asking the leader of %s to step down, and waiting until it has", wording.Name(key))
		end := c.waitFor(ctx, t, key)
		err = e.StepDown(ctx)
		end()
		switch {
		case errors.Is(err, election.ErrNoLeader):
			return failure.Like(err, "nobody leads "+wording.Name(key))
		case errors.Is(err, election.ErrLeaderDead):
			return failure.Like(err, "the leader of "+wording.Name(key)+" looks dead, and cannot be asked: the next candidate takes over, see leasehold get "+wording.ShellWord(key))
		default:
			return err
		}
	})
}
