// Package setup has the commands to set up a lock table and to try leasehold out: table,
// local and demo.
//
//	table.go      table
//	rewrite.go    table rewrite
//	local.go      local, which serves the embedded engine
//	demo.go       demo, which calls package demo
package setup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/checks"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/invocation"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/visible"
	"github.com/leasehold-go/leasehold/table"
)

// Commands builds the cobra commands of this package. They share one Invocation, which is
// one run of leasehold.
type Commands struct{ *invocation.Invocation }

// Table returns the command "leasehold table".
func (c *Commands) Table() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "table COMMAND [flags]",
		Short: "Create or check the lock table",
		Args:  cobra.ArbitraryArgs,
		RunE:  arguments.Subcommand,
	}
	cmd.AddGroup(&cobra.Group{Title: "Commands:"})
	cmd.AddCommand(c.newTableCreate(), c.newTableCheck(), c.newTableRewrite(), c.newTablePolicy(),
		c.newTableText("terraform", "HCL", table.Spec.Terraform), c.newTableText("cloudformation", "YAML", table.Spec.CloudFormation))
	return cmd
}

func (c *Commands) newTableCreate() *cobra.Command {
	return &cobra.Command{
		Use:   "create [flags]",
		Short: "Create the table if it is missing, wait for it and turn on TTL",
		Args:  arguments.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.OnStore(cmd, store.Opening{AnyLayout: true, Make: true}, func(ctx context.Context, s *store.Store) error {
				spec := table.Spec{Name: s.Table, Layout: s.Layout}
				problems, err := table.Check(ctx, s.Home, spec)
				fresh := s.Created || errors.Is(err, leasehold.ErrTableNotFound)
				if err != nil && !fresh {
					return failure.Answer(failure.Cause(ctx, err)) // return here, because table.Create below would only repeat the same request
				}
				if fresh {
					if err := c.Settings.RefuseFailover(); err != nil {
						return err
					}
				}
				if err := table.Create(ctx, s.Home, spec); err != nil {
					if slices.ContainsFunc(problems, func(p table.Problem) bool { return p.Fatal }) {
						return failure.Exit(failure.CodeNo, failure.Like(err, store.ByFlags(err.Error())))
					}
					return failure.Answer(failure.Cause(ctx, err))
				}
				return c.sayCreated(s, fresh)
			})
		},
	}
}

// sayCreated prints that the table was created or, if fresh is false, that it already
// existed.
func (c *Commands) sayCreated(s *store.Store, fresh bool) error {
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

func (c *Commands) newTableCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check [flags]",
		Short: "Check keys, TTL, replicas and rights; exit 1: does not fit",
		Args:  arguments.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.OnStore(cmd, store.Opening{AnyLayout: true}, func(ctx context.Context, s *store.Store) error {
				t, err := checks.New(s, protocol.DefaultLease, "leasehold-table-check-")
				if err != nil {
					return err
				}
				r := &checks.Report{Say: c.Say, Out: c.Stdout, JSON: c.JSON, Where: s.Where(), Strict: true}
				r.Run(ctx, t.Settings())
				return r.Verdict(ctx)
			})
		},
	}
}

// The subcommands below print a text about a lock table, such as its IAM policy. They read no AWS
// settings and send no requests, so the table need not exist.

func (c *Commands) newTablePolicy() *cobra.Command {
	var prefixes []string
	cmd := &cobra.Command{
		Use:       "policy [use|operate|read] [flags]",
		Short:     "Print a least-privilege IAM policy",
		Args:      cobra.ArbitraryArgs,
		ValidArgs: []cobra.Completion{string(table.Use), string(table.Operate), string(table.Read)},
		RunE: func(cmd *cobra.Command, args []string) error {
			access := table.Use
			switch {
			case len(args) > 1:
				return failure.MisuseOf(cmd, "only one access is allowed: remove %s", visible.Name(args[1]))
			case len(args) == 1:
				if access = table.Access(args[0]); !slices.Contains(cmd.ValidArgs, args[0]) {
					return failure.MisuseOf(cmd, "unknown access %s: it can be use, operate or read", visible.Name(args[0]))
				}
			}
			spec, named, err := c.tableSpec(cmd)
			if err != nil {
				return err
			}
			if spec.Name == named {
				return failure.Misusef("--table %s: a policy needs the ARN of the table: --table arn:aws:dynamodb:REGION:ACCOUNT:table/%s", visible.Name(named), visible.Name(named))
			}
			if slices.Contains(prefixes, "") {
				return failure.MisuseOf(cmd, "--prefix is empty, which every key begins with: name one, or leave it out")
			}
			text, err := spec.Policy(named, access, prefixes...)
			if err != nil {
				return failure.MisuseOf(cmd, "--prefix: %v", err)
			}
			return c.Print(json.RawMessage(text), "%s", text)
		},
	}
	cmd.Flags().StringArrayVar(&prefixes, "prefix", nil, "allow only keys that begin with `PREFIX`; may be repeated")
	return cmd
}

// newTableText returns the subcommand of "leasehold table" with the given name. The subcommand
// prints a definition of the lock table. The parameter "text" is the function that returns this
// definition, and the parameter "language" is the definition's language, such as HCL.
func (c *Commands) newTableText(name, language string, text func(table.Spec) string) *cobra.Command {
	return &cobra.Command{
		Use:   name + " [flags]",
		Short: "Print " + language,
		Args:  arguments.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.JSON {
				return failure.MisuseOf(cmd, "--json cannot be used here: %s prints %s", name, language)
			}
			spec, _, err := c.tableSpec(cmd)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(c.Stdout, text(spec))
			return err
		},
	}
}

// tableSpec returns the description of the lock table, from the flags and the environment. The
// result "named" is the table's name or ARN as the user gave it.
func (c *Commands) tableSpec(cmd *cobra.Command) (spec table.Spec, named string, err error) {
	l, err := c.Settings.RecordLayout()
	if err != nil {
		return spec, "", err
	}
	if c.Settings.File != "" {
		return spec, "", failure.Misusef("--file names a local store, but %s is for DynamoDB tables: use --table", cmd.Name())
	}
	named = cmp.Or(c.Settings.Table, c.Settings.Getenv("LEASEHOLD_TABLE"))
	if named == "" {
		return spec, "", failure.Misusef("no table: name the lock table with --table or LEASEHOLD_TABLE")
	}
	name, err := store.TableName(named)
	return table.Spec{Name: name, Layout: l}, named, err
}
