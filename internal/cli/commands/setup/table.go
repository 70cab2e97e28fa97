package setup

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/invocation"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/table"
)

// Table is leasehold table.
func Table(in *invocation.Invocation) *cobra.Command {
	c := &command{in}
	cmd := &cobra.Command{
		Use:   "table COMMAND [flags]",
		Short: "Create or check the lock table",
		Long:  "Create or check the lock table, or print its IAM policy or a template for it.",
		Example: `  leasehold table create --table locks
  leasehold table policy use --table arn:aws:dynamodb:eu-west-1:123456789012:table/locks
  leasehold table terraform --table locks > locks.tf`,
		Args: cobra.ArbitraryArgs,
		RunE: arguments.Subcommand,
	}
	cmd.AddCommand(c.newTableCreate(), c.newTableCheck(), c.newTableRewrite(), c.newTablePolicy(), c.newTableTerraform(), c.newTableCloudFormation())
	return cmd
}

func (c *command) newTableCreate() *cobra.Command {
	return &cobra.Command{
		Use:   "create [flags]",
		Short: "Create the table if it is missing, wait for it and turn on TTL",
		Args:  arguments.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.OnStore(cmd, store.Opening{AnyLayout: true, Make: true}, func(ctx context.Context, s *store.Store) error {
				spec := table.Spec{Name: s.Table, Layout: s.Layout}
				problems, err := table.Check(ctx, s.DB, spec)
				fresh := s.Created || errors.Is(err, leasehold.ErrTableNotFound)
				if err != nil && !fresh {
					return failure.Answer(failure.Cause(ctx, err)) // Create would ask the same once more
				}
				if err := table.Create(ctx, s.DB, spec); err != nil {
					if slices.ContainsFunc(problems, func(p table.Problem) bool { return p.Fatal }) {
						return failure.Exit(failure.CodeNo, err)
					}
					return failure.Answer(failure.Cause(ctx, err))
				}
				return c.sayCreated(s, fresh)
			})
		},
	}
}

// sayCreated writes what was created, or that the table existed.
func (c *command) sayCreated(s *store.Store, fresh bool) error {
	if c.JSON {
		return json.NewEncoder(c.Stdout).Encode(struct {
			Table   string `json:"table"`
			In      string `json:"in"`
			Created bool   `json:"created"`
		}{s.Table, s.Location, fresh})
	}
	if !fresh {
		return c.Stdout.Prose("%s in %s exists and fits", s.Table, s.Location)
	}
	ttl := "no TTL"
	if name := s.Proto.Schema().TTL; name != "" {
		ttl = "TTL on " + name
	}
	return c.Stdout.Prose("created %s in %s: pay per request, %s", s.Table, s.Location, ttl)
}
