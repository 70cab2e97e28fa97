package hold

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/holding"
	"github.com/leasehold-go/leasehold/internal/cli/invocation"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/process"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/textfile"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/visible"
	"github.com/leasehold-go/leasehold/layout"
)

// defaultGrace is the default of --grace for leases of four seconds and more.
// Below that it is a quarter of the lease, or less where clocks count.
const defaultGrace = time.Second

// wantedFlags say what is to be held, as far as Wanted does not.
type wantedFlags struct {
	holding.Wanted
	more []string // keys besides KEY
	once once
	data arguments.Data
}

type runFlags struct {
	wantedFlags
	conflictCode int
	signal       string
	grace        time.Duration
	background   string
	events       string
	metrics      string
}

// Run is leasehold run.
func Run(in *invocation.Invocation) *cobra.Command {
	c := &command{in}
	f := runFlags{wantedFlags: wantedFlags{Wanted: holding.Wanted{Lease: protocol.DefaultLease}}, grace: defaultGrace}
	cmd := &cobra.Command{
		Use:   "run KEY [flags] -- CMD [ARG...]",
		Short: "Hold KEY while CMD runs",
		Long: `Hold KEY while CMD runs.

Waits for KEY and shows who holds it, then runs CMD and renews the lease until
CMD ends. If the lease cannot be renewed in time, CMD and all that it started
are stopped before anybody else can be granted KEY. Signals are passed on to
CMD. The exit code is that of CMD. CMD sees LEASEHOLD_KEY, LEASEHOLD_OWNER and
LEASEHOLD_TOKEN, the fencing token. With -p each permit has tokens of its own:
those of two permits cannot be compared.

Several keys (-k) are acquired at once or not at all, whatever their order;
with --any it is the first of them that is free. LEASEHOLD_KEY and
LEASEHOLD_TOKEN are those of the first then, or of the one; LEASEHOLD_KEYS and
LEASEHOLD_TOKENS have all of several, one a line.

With --every or --once the record keeps what was done: CMD is run once in each
period, or once for a label, wherever it is typed. Who comes later, or waits,
is told who did it, and ends with exit code 0. If CMD fails, its holder dies, or
a signal tells leasehold to end before the work has, it is not done, whatever
CMD's exit code is, and the next one runs it.

KEY stays held while processes that CMD started still run, and leasehold says
so. --background stop stops them when CMD ends; --background keep releases KEY
though they run, for a CMD that starts a daemon.`,
		Example: `  leasehold run nightly-report -- ./report.sh
  leasehold run -n nightly-report -- ./report.sh      # skip it if held
  leasehold run -w 30s deploy/prod -- make deploy
  leasehold run -p 3 gpu -- ./render frame-17         # three at a time
  leasehold run -k src -k dst -- ./move.sh            # both, or wait
  leasehold run --any -k gpu0 -k gpu1 -- ./train.sh   # one of them
  leasehold run --every 24h nightly-report -- ./report.sh   # once a day
  leasehold run --once "$(git rev-parse HEAD)" deploy -- ./deploy.sh`,
		Annotations:       map[string]string{arguments.RunsCMD: arguments.Always},
		ValidArgsFunction: c.AnyKey,
		Args:              keyAndCommand,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.run(cmd, &f, args[:cmd.ArgsLenAtDash()], args[cmd.ArgsLenAtDash():])
		},
	}
	fl := cmd.Flags()
	waitFlags(fl, &f.wantedFlags)
	fl.IntVarP(&f.conflictCode, "conflict-exit-code", "E", failure.CodeNotGranted, "exit with `CODE` if KEY was not granted")
	fl.IntVarP(&f.Permits, "permits", "p", 1, "allow `N` holders of KEY at a time")
	severalFlags(fl, &f.wantedFlags)
	onceFlags(fl, &f.once)
	recordFlags(fl, &f.wantedFlags)
	commandFlags(fl, &f)
	fl.StringVar(&f.metrics, "metrics", "", "write metrics of this run to `FILE`, NAME.prom, for the node exporter's textfile collector")
	return cmd
}

// waitFlags say how long KEY is waited for.
func waitFlags(fl *pflag.FlagSet, f *wantedFlags) {
	fl.BoolVarP(&f.NoWait, "nonblock", "n", false, "do not wait for a holder that lives; one that looks dead is watched for its lease")
	fl.VarP(arguments.Duration{D: &f.Wait}, "wait", "w", "wait at most `DURATION` (default: forever), then try as -n does")
	lineFlag(fl, f)
}

// lineFlag says in which order processes wait.
func lineFlag(fl *pflag.FlagSet, f *wantedFlags) {
	fl.BoolVar(&f.InLine, "line", false, "wait in line, which the record keeps: first come, first served, among those who give it")
}

// recordFlags say what is written.
func recordFlags(fl *pflag.FlagSet, f *wantedFlags) {
	fl.VarP(arguments.Duration{D: &f.Lease}, "lease", "l", "a dead holder blocks KEY for `DURATION`")
	fl.StringVar(&f.SortKey, "sort-key", "", "sort key `VALUE`, in a table that has one")
	f.data.Flag(fl)
}

// commandFlags say how CMD runs under KEY.
func commandFlags(fl *pflag.FlagSet, f *runFlags) {
	fl.StringVarP(&f.signal, "signal", "s", "TERM", "stop CMD with `SIGNAL` if the lock is lost")
	fl.VarP(arguments.Duration{D: &f.grace}, "grace", "g", "wait `DURATION` from SIGNAL to KILL; both are sent before trust ends")
	fl.StringVar(&f.background, "background", process.BackgroundWait, "what becomes of processes that outlive CMD, `MODE`: wait, stop, or keep")
	fl.StringVar(&f.Owner, "owner", "", "`NAME` shown to others (default host/pid/random)")
	fl.StringVar(&f.events, "events", "", "write events as JSON to `FD|FILE`: the number of a file descriptor, or a file to append to (leasehold help events)")
}

// keyAndCommand accepts KEY -- CMD [ARG...].
func keyAndCommand(cmd *cobra.Command, args []string) error {
	dash := cmd.ArgsLenAtDash()
	more := cmd.Flags().Lookup("key")
	named := more != nil && more.Changed
	switch {
	case dash >= 0:
	case len(args) == 0 && !named:
		return misuse.Of(cmd, "KEY and CMD are missing")
	case len(args) == 0, len(args) == 1 && !named:
		return misuse.Of(cmd, "CMD is missing: put it after --")
	case named:
		return misuse.Of(cmd, "put -- before CMD")
	default:
		return misuse.Of(cmd, "put -- between KEY and CMD")
	}
	if dash > 0 || !named {
		if err := arguments.OneKey(cmd, args[:dash]); err != nil {
			return err
		}
	}
	if dash == len(args) {
		return misuse.Of(cmd, "CMD is missing after --")
	}
	return nil
}

func (c *command) run(cmd *cobra.Command, f *runFlags, args, command []string) error {
	f.name(args)
	if f.metrics != "" {
		p, err := c.Settings.Place("")
		if err != nil {
			return err
		}
		if c.Metrics, err = textfile.Open(f.metrics, c.Now(), p, f.Keys, f.SortKey); err != nil {
			return err
		}
	}
	if err := c.checkSeveral(cmd, &f.wantedFlags); err != nil {
		return err
	}
	j, err := c.newJob(cmd, f, command)
	if err != nil {
		return err
	}
	if err := checkPermits(cmd, &f.Wanted); err != nil {
		return err
	}
	if f.conflictCode < 0 || f.conflictCode > 255 {
		return misuse.Of(cmd, "-E %d: use an exit code from 0 to 255", f.conflictCode)
	}
	if err := c.Say.OpenEvents(f.events, c.Now()); err != nil {
		return err
	}
	return c.seeking(cmd, &f.wantedFlags, func(s *store.Store, seeker *holding.Seeker) error {
		h, err := seeker.Acquire(cmd.Context())
		switch {
		case errors.Is(err, leasehold.ErrDone):
			c.Say.Text("%s", failure.Text(err, s.Where()))
			return nil
		case failure.NotGranted(err):
			return failure.Exit(f.conflictCode, err)
		case err != nil:
			return failure.Answer(err)
		}
		c.Metrics.Granted(c.Now())
		_, err = h.Run(j)
		c.Metrics.Ended(c.Now())
		return err
	})
}

// seeking opens the table and calls fn, ready to wait there for what the flags say.
func (c *command) seeking(cmd *cobra.Command, f *wantedFlags, fn func(*store.Store, *holding.Seeker) error) error {
	s, err := c.Open(cmd, store.Opening{Make: true})
	if err != nil {
		return err
	}
	defer s.Close()
	if f.Data, err = f.data.Option(c.Stdin); err != nil { // while a signal still ends the wait for it
		return err
	}
	seeker := holding.Seek(holding.User{Settings: &c.Settings, Environ: c.Environ, Say: c.Say, Now: c.Now}, s, f.Wanted)
	defer seeker.Close()
	return fn(s, seeker)
}

// newJob checks the flags that say how CMD runs, and finds CMD.
func (c *command) newJob(cmd *cobra.Command, f *runFlags, command []string) (process.Job, error) {
	proto, err := c.completeWanted(cmd, &f.wantedFlags)
	if err != nil {
		return process.Job{}, err
	}
	if err := completeGrace(cmd, f, proto.Skew()); err != nil {
		return process.Job{}, err
	}
	stop, err := process.ParseSignal(f.signal)
	if err != nil {
		return process.Job{}, misuse.Of(cmd, "--signal: %v", err)
	}
	if !slices.Contains(process.BackgroundModes, f.background) {
		return process.Job{}, misuse.Of(cmd, "--background %s: use %s", visible.Name(f.background), strings.Join(process.BackgroundModes, ", "))
	}
	path, err := process.Find(command[0])
	return process.Job{
		Cmd:        &exec.Cmd{Path: path, Args: command, Stdin: c.Stdin, Stdout: c.Env.Stdout, Stderr: c.Env.Stderr},
		Executable: c.Executable, Stop: stop, Grace: f.grace, Background: f.background,
	}, err
}

// completeGrace checks the time that CMD has to stop, or sets its default. A lease is
// renewed each third of its trust: a grace of all that is left would have CMD stopped while
// the renewal is under way. Where clocks do not count, the longest is half the lease.
func completeGrace(cmd *cobra.Command, f *runFlags, skew time.Duration) error {
	trust := lease.Usual(f.Lease, skew).Trust()
	longest, half := (trust / 9 * 5).Truncate(time.Millisecond), "half the lease"
	if skew > 0 {
		half = fmt.Sprintf("a lease of %s is trusted for %s: clocks may differ by %s", wording.Duration(f.Lease), wording.Duration(trust), wording.Duration(skew))
	}
	if !cmd.Flags().Changed("grace") {
		f.grace = min(f.grace, longest/2)
	}
	if f.grace >= longest {
		return misuse.Of(cmd, "--grace %s is too long: it must be below %s (%s)", wording.Duration(f.grace), wording.Duration(longest), half)
	}
	return nil
}

// checkLine refuses --line where nobody stands in line.
func checkLine(cmd *cobra.Command, f *wantedFlags, l layout.Layout, proto protocol.Protocol) error {
	_, can := proto.(protocol.Lining)
	switch {
	case !f.InLine:
		return nil
	case f.NoWait:
		return misuse.Of(cmd, "--line and -n: who does not wait stands in no line: use one of them")
	case f.Permits > 1 || len(f.more) > 0:
		return misuse.Of(cmd, "--line is for one key: leave it out")
	case !can:
		return misuse.Of(cmd, "--line: records of layout %s have no line: leave it out", l.Name())
	}
	return nil
}

// completeWanted checks the flags and reads those that the environment may set. It
// returns the protocol of the layout.
func (c *command) completeWanted(cmd *cobra.Command, f *wantedFlags) (protocol.Protocol, error) {
	waits := cmd.Flags().Changed("wait")
	if f.NoWait && waits {
		return nil, misuse.Of(cmd, "--nonblock and --wait: use one of them")
	}
	f.NoWait = f.NoWait || waits && f.Wait == 0
	var err error
	if f.Owner, err = arguments.Owner(f.Owner, &c.Settings); err != nil {
		return nil, err
	}
	if f.Lease, err = arguments.Lease(f.Lease, cmd.Flags().Changed("lease"), &c.Settings); err != nil {
		return nil, err
	}
	l, proto, err := c.Settings.Protocol()
	if err != nil {
		return nil, err
	}
	if err := checkLine(cmd, f, l, proto); err != nil {
		return nil, err
	}
	if err := f.completeOnce(cmd, l, proto); err != nil {
		return nil, err
	}
	return proto, arguments.RefuseShortLease(cmd, f.Lease, &c.Settings)
}
