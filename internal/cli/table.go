package cli

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/process"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/internal/visible"
	"github.com/leasehold-go/leasehold/table"
)

func (a *app) newTable() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "table COMMAND [flags]",
		Short: "Create or check the lock table",
		Long:  "Create or check the lock table, or print its IAM policy or a template for it.",
		Example: `  leasehold table create --table locks
  leasehold table policy use --table arn:aws:dynamodb:eu-west-1:123456789012:table/locks
  leasehold table terraform --table locks > locks.tf`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return usageOf(cmd, "unknown command %s", visible.Name(args[0]))
		},
	}
	cmd.AddCommand(a.newTableCreate(), a.newTableCheck(), a.newTableRewrite(), a.newTablePolicy(), a.newTableTerraform(), a.newTableCloudFormation())
	return cmd
}

func (a *app) newTableCreate() *cobra.Command {
	return &cobra.Command{
		Use:   "create [flags]",
		Short: "Create the table if it is missing, wait for it and turn on TTL",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.open(cmd, store.Opening{AnyLayout: true, Make: true})
			if err != nil {
				return err
			}
			defer s.Close()
			ctx, done := process.UntilSignal(cmd.Context())
			defer done()
			spec := table.Spec{Name: s.Table, Layout: s.Layout}
			problems, err := table.Check(ctx, s.DB, spec)
			fresh := s.Created || errors.Is(err, leasehold.ErrTableNotFound)
			if err := table.Create(ctx, s.DB, spec); err != nil {
				if slices.ContainsFunc(problems, func(p table.Problem) bool { return p.Fatal }) {
					return failure.Exit(failure.CodeNo, err)
				}
				return failure.Answer(cause(ctx, err))
			}
			return a.sayCreated(s, fresh)
		},
	}
}

// sayCreated writes what was created, or that the table existed.
func (a *app) sayCreated(s *store.Store, fresh bool) error {
	proto, err := records.Of(s.Layout)
	if err != nil {
		return err
	}
	if a.flags.json {
		return json.NewEncoder(a.Stdout).Encode(struct {
			Table   string `json:"table"`
			In      string `json:"in"`
			Created bool   `json:"created"`
		}{s.Table, s.Location, fresh})
	}
	if !fresh {
		return a.Stdout.Prose("%s in %s exists and fits", s.Table, s.Location)
	}
	ttl := "no TTL"
	if name := proto.Schema().TTL; name != "" {
		ttl = "TTL on " + name
	}
	return a.Stdout.Prose("created %s in %s: pay per request, %s", s.Table, s.Location, ttl)
}
