package inspect

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/checks"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/invocation"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/process"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/visible"
	"github.com/leasehold-go/leasehold/table"
)

const (
	doctorTime   = time.Minute // for all checks
	doctorPrefix = "leasehold-doctor/"
)

type doctorFlags struct {
	access string
	lease  time.Duration
	prefix string
}

// Doctor is leasehold doctor.
func Doctor(in *invocation.Invocation) *cobra.Command {
	c := &command{in}
	f := doctorFlags{lease: protocol.DefaultLease}
	cmd := &cobra.Command{
		Use:   "doctor [flags]",
		Short: "Check everything that locks here depend on",
		Long: `Check everything that locks here depend on, one line each, "ok" included:
where the locks are and who says so, the caller, the table, its permissions, a
lock that is really acquired, renewed and released, the round trip against the
lease, connections and clock. Of a local store: its file, file system and lock.
Beside what is not ok stands what to do.

Writes about a hundred times to one key that begins with ` + doctorPrefix + ` and
deletes it. With --access read it writes nothing. Takes seconds, a minute at
most, and sends about 120 requests.

Permissions are compared with those that leasehold table policy ACCESS prints.
A service that may do less than operate is checked with --access use.

Exit code 1: something is not ok. 2: it could not be found out, as nobody
answers, the credentials are refused, or there is no such table.`,
		Example: `  leasehold doctor --table locks
  leasehold doctor --access use -l 1m
  leasehold doctor --json | jq -r 'select(.state != "ok") | .what'`,
		Args: arguments.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if f.lease, err = arguments.Lease(f.lease, cmd.Flags().Changed("lease"), &c.Settings); err != nil {
				return err
			}
			switch table.Access(f.access) {
			case table.Use, table.Operate, table.Read:
			default:
				return misuse.Of(cmd, "unknown access %s: it can be use, operate or read", visible.Name(f.access))
			}
			return c.doctor(cmd, f)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.access, "access", string(table.Operate), "what the caller must be allowed to do, `ACCESS`: use, operate, read")
	fl.VarP(arguments.Duration{D: &f.lease}, "lease", "l", "compare the round trip with a lease of `DURATION`")
	fl.StringVar(&f.prefix, "prefix", "", "begin the key to write to with `PREFIX`, if the caller may use no others")
	return cmd
}

func (c *command) doctor(cmd *cobra.Command, f doctorFlags) error {
	c.PlaceShown = true
	if err := arguments.RefuseShortLease(cmd, f.lease, &c.Settings); err != nil {
		return err
	}
	p, err := c.Settings.Place("")
	if err != nil {
		return err
	}
	ctx, done := process.UntilSignal(cmd.Context())
	defer done()
	ctx, cancel := context.WithTimeoutCause(ctx, doctorTime, fmt.Errorf("not done after %s", wording.Age(doctorTime)))
	defer cancel()
	r := c.Report()
	if err := c.examine(ctx, cmd, r, p, f); err != nil && failure.Interrupted(context.Cause(ctx)) == nil {
		return err
	}
	return r.Verdict(ctx)
}

// examine makes all checks. Its error is that of the command line; of all else the
// findings speak.
func (c *command) examine(ctx context.Context, cmd *cobra.Command, r *checks.Report, p store.Place, f doctorFlags) error {
	if p.File != "" && !r.Run(ctx, c.fileOf(cmd, p).Checks()) {
		return nil
	}
	s, err := c.Open(cmd, store.Opening{AnyLayout: true})
	switch {
	case err != nil && p.File == "":
		return err
	case err != nil:
		r.Where = p.Table + " in " + p.File
		r.Found(ctx, checks.Finding{Check: "open", State: checks.Fatal, Err: err, Failed: true})
		return nil
	}
	defer s.Close()
	t, err := checks.New(s, table.Access(f.access), f.lease, cmp.Or(f.prefix, s.Prefix)+doctorPrefix)
	if err != nil {
		return err
	}
	r.Where = s.Where()
	with, err := s.WithLocks(leasehold.Config{Lease: f.lease})
	if err != nil {
		return err
	}
	var list []checks.Check
	if s.File == "" {
		list = t.From(checks.Origin{AWS: s.AWS, TableBy: namedBy("table", c.Settings.Table, "LEASEHOLD_TABLE"), RegionBy: c.Settings.RegionBy(s.AWS)})
	}
	r.Run(ctx, append(append(list, t.Settings()...), t.Locking(with.Locks)...))
	return nil
}

// fileOf is the file of a local store, as it is checked.
func (c *command) fileOf(cmd *cobra.Command, p store.Place) checks.File {
	named := "named by " + namedBy("file", c.Settings.File, "LEASEHOLD_FILE")
	if p.Unnamed {
		named = "as no table and no file is named"
	}
	return checks.File{
		Path: p.File, Table: p.Table, Named: named, Scope: p.Scope(), Unnamed: p.Unnamed, Machine: p.Machine,
		OfAnyUser: c.Settings.IsMachines(p.File), StoreFlags: arguments.StoreFlags(cmd), FileSystem: c.FileSystem,
	}
}

// namedBy says whether a flag or a variable named the store.
func namedBy(flag, value, variable string) string {
	if value != "" {
		return "--" + flag
	}
	return variable
}
