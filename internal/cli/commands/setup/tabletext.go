package setup

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/visible"
	"github.com/leasehold-go/leasehold/table"
)

// The commands in this file print a text about a table, which need not exist.
// They read no AWS settings and send no requests.

func (c *command) newTablePolicy() *cobra.Command {
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
				return misuse.Of(cmd, "only one access is allowed: remove %s", visible.Name(args[1]))
			case len(args) == 1:
				if access = table.Access(args[0]); !slices.Contains(accesses, access) {
					return misuse.Of(cmd, "unknown access %s: it can be use, operate or read", visible.Name(args[0]))
				}
			}
			spec, named, err := c.tableSpec(cmd)
			if err != nil {
				return err
			}
			if spec.Name == named {
				return misuse.Errorf("--table %s: a policy needs the ARN of the table: --table arn:aws:dynamodb:REGION:ACCOUNT:table/%s", visible.Name(named), visible.Name(named))
			}
			if slices.Contains(prefixes, "") {
				return misuse.Of(cmd, "--prefix is empty, which every key begins with: name one, or leave it out")
			}
			if shared {
				if len(prefixes) == 0 {
					return misuse.Of(cmd, "--shared goes with --prefix: without one every key is allowed")
				}
				prefixes = append(prefixes, table.SharedLeases)
			}
			text := spec.Policy(named, access, prefixes...)
			if c.JSON {
				var line bytes.Buffer
				if err := json.Compact(&line, []byte(text)); err != nil {
					return err
				}
				text = line.String() + "\n"
			}
			_, err = fmt.Fprint(c.Stdout, text)
			return err
		},
	}
	cmd.Flags().StringArrayVar(&prefixes, "prefix", nil, "allow only keys that begin with `PREFIX`; may be repeated")
	cmd.Flags().BoolVar(&shared, "shared", false, "with --prefix: allow shared leases, everybody's")
	return cmd
}

func (c *command) newTableTerraform() *cobra.Command {
	return c.newTableText("terraform", "HCL", "a resource of Terraform's AWS provider", `  leasehold table terraform --table locks > locks.tf`, table.Spec.Terraform)
}

func (c *command) newTableCloudFormation() *cobra.Command {
	return c.newTableText("cloudformation", "YAML", "a CloudFormation template", `  leasehold table cloudformation --table locks > locks.yaml
  aws cloudformation deploy --stack-name locks --template-file locks.yaml`, table.Spec.CloudFormation)
}

// newTableText returns a command that prints a template of the table.
func (c *command) newTableText(name, language, what, example string, text func(table.Spec) string) *cobra.Command {
	disposable := false
	cmd := &cobra.Command{
		Use:   name + " [flags]",
		Short: "Print " + language,
		Long: "Print the table as " + language + ", " + what + `.

It is the table that table create would create with the same --layout and
--attr.

It is protected against deletion, and DynamoDB recovers it to a point in time,
which AWS charges for by the size of the table: a lock is below a kilobyte.
--disposable leaves both out. Do not let clients use a table that was restored:
see docs/table.md. No AWS settings are needed.`,
		Example: example,
		Args:    arguments.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.JSON {
				return misuse.Of(cmd, "--json cannot be used here: %s prints %s", name, language)
			}
			spec, _, err := c.tableSpec(cmd)
			if err != nil {
				return err
			}
			spec.Disposable = disposable
			_, err = fmt.Fprint(c.Stdout, text(spec))
			return err
		},
	}
	cmd.Flags().BoolVar(&disposable, "disposable", false, "without protection against deletion, and without recovery")
	return cmd
}

// tableSpec returns the table that flags and environment name. named is the name
// or the ARN that they use.
func (c *command) tableSpec(cmd *cobra.Command) (spec table.Spec, named string, err error) {
	l, err := c.Settings.Layout()
	if err != nil {
		return spec, "", err
	}
	if c.Settings.File != "" {
		return spec, "", misuse.Errorf("--file names a local store, but %s is for DynamoDB tables: use --table", cmd.Name())
	}
	named = cmp.Or(c.Settings.Table, c.Getenv("LEASEHOLD_TABLE"))
	if named == "" {
		return spec, "", misuse.Errorf("no table: name the lock table with --table or LEASEHOLD_TABLE")
	}
	name, err := store.TableName(named)
	return table.Spec{Name: name, Layout: l}, named, err
}
