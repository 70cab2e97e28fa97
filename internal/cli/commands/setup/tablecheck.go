package setup

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/checks"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/table"
)

func (c *command) newTableCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check [flags]",
		Short: "Check keys, TTL, replicas and permissions; exit 1: does not fit",
		Long: `Check that the table fits the layout, one line each, "ok" included: its status,
keys, time to live and replicas, and each permission, by a request that changes
nothing. Beside what is not ok stands what to do. Exit code 1: something is not.

leasehold doctor checks more: the caller, a lock that is really acquired, the
round trip, the clock.`,
		Example: `  leasehold table check --table locks
  leasehold table check --json | jq -r 'select(.state != "ok") | .what'`,
		Args: arguments.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.OnStore(cmd, store.Opening{AnyLayout: true}, func(ctx context.Context, s *store.Store) error {
				t, err := checks.New(s, table.Operate, protocol.DefaultLease, "leasehold-table-check-")
				if err != nil {
					return err
				}
				r := c.Report()
				r.Where, r.Strict = s.Where(), true
				r.Run(ctx, t.Settings())
				return r.Verdict(ctx)
			})
		},
	}
}
