package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/visible"
	"github.com/leasehold-go/leasehold/table"
)

// The commands in this file print a text about a table, which need not exist.
// They read no AWS settings and send no requests.

func (a *app) newTablePolicy() *cobra.Command {
	accesses := []table.Access{table.Use, table.Operate, table.Read}
	var prefixes []string
	shared := false
	cmd := &cobra.Command{
		Use:   "policy [use|operate|read] [flags]",
		Short: "Print a least-privilege IAM policy",
		Long: `Print a least-privilege IAM policy for the table. --table must be an ARN.

use (the default) allows holding locks, for services. operate also allows
listing and breaking them, for operators. read allows only list and get. The
policy does not cover writes of Commit to your own tables. No AWS settings are
needed.

With --prefix it allows keys alone that begin so, to each service its own: end
it with a slash, or "bill" allows "billing/7" as well. Then nothing lists the
table. Tell the service: LEASEHOLD_PREFIX=billing/, or Config.Prefixes. Another
key is refused by an error that names the prefix.

Shared leases (run --shared, Config.SharedLease) need --shared, too. Their rows
are everybody's: who has it can end the shared lease of any other client.`,
		Example: `  leasehold table policy use --table arn:aws:dynamodb:eu-west-1:123456789012:table/locks
  leasehold table policy use --table arn:aws:dynamodb:eu-west-1:123456789012:table/locks --prefix billing/
  leasehold table policy read --table arn:aws:dynamodb:eu-west-1:123456789012:table/locks > read.json`,
		Args:      cobra.ArbitraryArgs,
		ValidArgs: []cobra.Completion{string(table.Use), string(table.Operate), string(table.Read)},
		RunE: func(cmd *cobra.Command, args []string) error {
			access := accesses[0]
			switch {
			case len(args) > 1:
				return usageOf(cmd, "only one access is allowed: remove %s", visible.Name(args[1]))
			case len(args) == 1:
				access = ""
				for _, known := range accesses {
					if args[0] == string(known) {
						access = known
					}
				}
				if access == "" {
					return usageOf(cmd, "unknown access %s: it can be use, operate or read", visible.Name(args[0]))
				}
			}
			spec, named, err := a.tableSpec(cmd)
			if err != nil {
				return err
			}
			if spec.Name == named {
				return misuse.Errorf("--table %s: a policy needs the ARN of the table: --table arn:aws:dynamodb:REGION:ACCOUNT:table/%s", visible.Name(named), visible.Name(named))
			}
			if slices.Contains(prefixes, "") {
				return usageOf(cmd, "--prefix is empty, which every key begins with: name one, or leave it out")
			}
			if shared {
				if len(prefixes) == 0 {
					return usageOf(cmd, "--shared goes with --prefix: without one every key is allowed")
				}
				prefixes = append(prefixes, table.SharedLeases)
			}
			text := spec.Policy(named, access, prefixes...)
			if a.flags.json {
				var line bytes.Buffer
				if err := json.Compact(&line, []byte(text)); err != nil {
					return err
				}
				text = line.String() + "\n"
			}
			_, err = fmt.Fprint(a.Stdout, text)
			return err
		},
	}
	cmd.Flags().StringArrayVar(&prefixes, "prefix", nil, "allow only keys that begin with `PREFIX`; may be repeated")
	cmd.Flags().BoolVar(&shared, "shared", false, "with --prefix: allow shared leases, everybody's")
	return cmd
}

func (a *app) newTableTerraform() *cobra.Command {
	return a.newTableText("terraform", "HCL", `Print the table as HCL, a resource of Terraform's AWS provider.

It is the table that table create would create with the same --layout and
--attr.

It is protected against deletion, and DynamoDB recovers it to a point in time,
which AWS charges for by the size of the table: a lock is below a kilobyte.
--disposable leaves both out. Do not let clients use a table that was restored:
see docs/table.md. No AWS settings are needed.`, `  leasehold table terraform --table locks > locks.tf`, table.Spec.Terraform)
}

func (a *app) newTableCloudFormation() *cobra.Command {
	return a.newTableText("cloudformation", "YAML", `Print the table as YAML, a CloudFormation template.

It is the table that table create would create with the same --layout and
--attr.

It is protected against deletion, and DynamoDB recovers it to a point in time,
which AWS charges for by the size of the table: a lock is below a kilobyte.
--disposable leaves both out. Do not let clients use a table that was restored:
see docs/table.md. No AWS settings are needed.`, `  leasehold table cloudformation --table locks > locks.yaml
  aws cloudformation deploy --stack-name locks --template-file locks.yaml`, table.Spec.CloudFormation)
}

// newTableText returns a command that prints a template of the table.
func (a *app) newTableText(name, language, long, example string, text func(table.Spec) string) *cobra.Command {
	disposable := false
	cmd := &cobra.Command{
		Use:     name + " [flags]",
		Short:   "Print " + language,
		Long:    long,
		Example: example,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.flags.json {
				return usageOf(cmd, "--json cannot be used here: %s prints %s", name, language)
			}
			spec, _, err := a.tableSpec(cmd)
			if err != nil {
				return err
			}
			spec.Disposable = disposable
			_, err = fmt.Fprint(a.Stdout, text(spec))
			return err
		},
	}
	cmd.Flags().BoolVar(&disposable, "disposable", false, "without protection against deletion, and without recovery")
	return cmd
}

// tableSpec returns the table that flags and environment name. named is the name
// or the ARN that they use.
func (a *app) tableSpec(cmd *cobra.Command) (spec table.Spec, named string, err error) {
	l, err := a.settings(cmd).Layout()
	if err != nil {
		return spec, "", err
	}
	if a.flags.File != "" {
		return spec, "", misuse.Errorf("--file names a local store, but %s is for DynamoDB tables: use --table", cmd.Name())
	}
	named = a.flags.Table
	if named == "" {
		named = a.get("LEASEHOLD_TABLE")
	}
	if named == "" {
		return spec, "", misuse.Errorf("no table: name the lock table with --table or LEASEHOLD_TABLE")
	}
	name, err := store.TableName(named)
	return table.Spec{Name: name, Layout: l}, named, err
}
