package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"
	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/checks"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/process"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/scratch"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
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

func (a *app) newDoctor() *cobra.Command {
	f := doctorFlags{lease: defaultLease}
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
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if f.lease, err = chooseLease(f.lease, cmd.Flags().Changed("lease"), &a.flags.Settings); err != nil {
				return err
			}
			switch table.Access(f.access) {
			case table.Use, table.Operate, table.Read:
			default:
				return usageOf(cmd, "unknown access %s: it can be use, operate or read", visible.Name(f.access))
			}
			return a.doctor(cmd, f)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.access, "access", string(table.Operate), "what the caller must be allowed to do, `ACCESS`: use, operate, read")
	fl.VarP(durationFlag{d: &f.lease}, "lease", "l", "compare the round trip with a lease of `DURATION`")
	fl.StringVar(&f.prefix, "prefix", "", "begin the key to write to with `PREFIX`, if the caller may use no others")
	return cmd
}

func (a *app) doctor(cmd *cobra.Command, f doctorFlags) error {
	l, proto, err := a.chooseProtocol(cmd)
	if err != nil {
		return err
	}
	a.placeShown = true
	if err := refuseShortLease(cmd, f.lease, l, proto.Skew()); err != nil {
		return err
	}
	p, err := a.flags.Place("")
	if err != nil {
		return err
	}
	ctx, done := process.UntilSignal(cmd.Context())
	defer done()
	ctx, cancel := context.WithTimeoutCause(ctx, doctorTime, fmt.Errorf("not done after %s", wording.Age(doctorTime)))
	defer cancel()
	r := &report{app: a, ctx: ctx}
	if err := a.examine(cmd, r, p, f); err != nil && failure.Interrupted(context.Cause(ctx)) == nil {
		return err
	}
	return r.verdict()
}

// examine makes all checks. Its error is that of the command line; of all else the
// findings speak.
func (a *app) examine(cmd *cobra.Command, r *report, p store.Place, f doctorFlags) error {
	if p.File != "" && !r.run(a.fileOf(cmd, p).Checks()) {
		return nil
	}
	s, err := a.open(cmd, store.Opening{AnyLayout: true})
	switch {
	case err != nil && p.File == "":
		return err
	case err != nil:
		r.where = p.Table + " in " + p.File
		r.found(checks.Finding{Check: "open", State: checks.Fatal, Err: err, Failed: true})
		return nil
	}
	defer s.Close()
	t, err := targetOf(s, table.Access(f.access), f.lease, f.prefix+doctorPrefix)
	if err != nil {
		return err
	}
	r.where, s.DB = s.Where(), t.DB
	locks, err := s.Locks(leasehold.Config{Lease: f.lease})
	if err != nil {
		return err
	}
	defer store.CloseLocks(locks)
	var list []checks.Check
	if s.File == "" {
		list = t.From(checks.Origin{AWS: s.AWS, TableBy: namedBy("table", a.flags.Table, "LEASEHOLD_TABLE"), RegionBy: a.flags.RegionBy(s.AWS)})
	}
	r.run(append(append(list, t.Settings()...), t.Locking(locks)...))
	return nil
}

// fileOf is the file of a local store, as it is checked.
func (a *app) fileOf(cmd *cobra.Command, p store.Place) checks.File {
	named := "named by " + namedBy("file", a.flags.File, "LEASEHOLD_FILE")
	if p.Unnamed {
		named = "as no table and no file is named"
	}
	return checks.File{
		Path: p.File, Table: p.Table, Named: named, Scope: p.Scope(), Unnamed: p.Unnamed, Machine: p.Machine,
		OfAnyUser: a.flags.IsMachines(p.File), StoreFlags: storeFlags(cmd), FileSystem: a.FileSystem,
	}
}

// namedBy says whether a flag or a variable named the store.
func namedBy(flag, value, variable string) string {
	if value != "" {
		return "--" + flag
	}
	return variable
}

// target is the table as it is checked.
func targetOf(s *store.Store, access table.Access, lease time.Duration, key string) (*checks.Target, error) {
	return checks.New(checks.Target{
		Table: scratch.Table{DB: s.DB, Name: s.Table, Layout: s.Layout}, Place: s.Location, Local: s.File != "", Made: s.Created, Access: access, Lease: lease,
		OnThisMachine: store.IsLoopback(aws.ToString(s.DB.Options().BaseEndpoint)),
	}, key)
}

// report prints findings, and makes an exit code of them.
type report struct {
	app    *app
	ctx    context.Context // of the checks
	where  string          // the table is
	strict bool            // what is not known is no answer, and what failed is an error

	worst  checks.State // "", Warning or Fatal
	failed bool         // something could not be found out
	err    error        // of what failed, or of the output
}

func (r *report) run(list []checks.Check) (more bool) {
	return checks.Run(r.ctx, list, r.does, r.found)
}

// does says what is being done, on a terminal.
func (r *report) does(what string) {
	if r.app.say.Rewrites() {
		r.app.say.Rewrite(what)
	}
}

// found prints a finding as soon as it is known. After a signal requests fail, and say
// nothing.
func (r *report) found(f checks.Finding) {
	if r.err != nil || f.Check != checks.CleanUp && failure.Interrupted(context.Cause(r.ctx)) != nil {
		return
	}
	if f.State == checks.Fatal || f.State == checks.Warning && r.worst == "" {
		r.worst = f.State
	}
	r.failed = r.failed || f.Failed || r.strict && f.State == checks.Unknown
	if r.strict && f.Failed {
		r.err = f.Err
		return
	}
	r.err = r.print(f)
}

// print writes a line to standard output.
func (r *report) print(f checks.Finding) error {
	a := r.app
	if f.Err != nil {
		f.What = strings.TrimPrefix(f.What+": "+r.why(f.Err), ": ")
		if f.Failed {
			f.Do = strings.TrimPrefix(failure.Remedy(f.Err), ": ")
		}
	}
	f.What, f.Do = failure.OneLine(f.What), failure.OneLine(f.Do)
	a.say.Clear()
	switch {
	case a.flags.json:
		return json.NewEncoder(a.Stdout).Encode(f)
	case a.Stdout.Terminal:
		what := f.What
		if f.Do != "" {
			what += ": " + f.Do
		}
		state := fmt.Sprintf("%-7s", f.State)
		text := wording.Fill(fmt.Sprintf("%s  %-18s  ", state, f.Check), what, a.Stdout.Columns())
		return a.Stdout.Show(append(stateColour[f.State].Of(state), strings.TrimPrefix(text, state))...)
	}
	return a.Stdout.Show(say.Tabbed(string(f.State), f.Check, f.What, f.Do), "\n")
}

// why is the text of an error. Of one of the SDK it is the reason alone: the line says
// what was asked.
func (r *report) why(err error) string {
	var ours *leasehold.OpError
	var sdk *smithy.OperationError
	if errors.As(err, &sdk) && !errors.As(err, &ours) {
		return failure.Reason(err)
	}
	return failure.Text(err, r.where)
}

// stateColour marks what is not ok.
var stateColour = map[checks.State]say.Colour{checks.Fatal: say.Red, checks.Warning: say.Yellow}

// verdict makes an exit code of the findings.
func (r *report) verdict() error {
	switch {
	case failure.Interrupted(context.Cause(r.ctx)) != nil:
		return failure.Interrupted(context.Cause(r.ctx))
	case r.err != nil:
		return r.err
	case r.ctx.Err() != nil:
		return context.Cause(r.ctx)
	case r.failed:
		return failure.Exit(failure.CodeTrouble, nil)
	case r.worst != "":
		return failure.Exit(failure.CodeNo, nil)
	}
	return nil
}
