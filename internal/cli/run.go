package cli

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/holding"
	"github.com/leasehold-go/leasehold/internal/cli/process"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/textfile"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/visible"
	"github.com/leasehold-go/leasehold/layout"
)

// defaultLease is the library's default.
const defaultLease = protocol.DefaultLease

// defaultGrace is the default of --grace for leases of four seconds and more.
// Below that it is a quarter of the lease.
const defaultGrace = time.Second

// wantedFlags say what is to be held, as far as Wanted does not.
type wantedFlags struct {
	holding.Wanted
	more []string // keys besides KEY
	data dataFlag
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

func (a *app) newRun() *cobra.Command {
	f := runFlags{wantedFlags: wantedFlags{Wanted: holding.Wanted{Lease: defaultLease}}, grace: defaultGrace}
	cmd := &cobra.Command{
		Use:   "run KEY [flags] -- CMD [ARG...]",
		Short: "Hold KEY while CMD runs",
		Long: `Hold KEY while CMD runs.

Waits for KEY and shows who holds it, then runs CMD and renews the lease until
CMD ends. If the lease cannot be renewed in time, CMD and all that it started
are stopped before anybody else can be granted KEY. Signals are passed on to
CMD. The exit code is that of CMD. CMD sees LEASEHOLD_KEY, LEASEHOLD_OWNER and
LEASEHOLD_TOKEN, the fencing token.

Several keys (-k) are acquired at once or not at all, whatever their order;
with --any it is the first of them that is free. LEASEHOLD_KEY and
LEASEHOLD_TOKEN are those of the first then, or of the one; LEASEHOLD_KEYS and
LEASEHOLD_TOKENS have all of several, one a line.

KEY stays held while processes that CMD started still run, and leasehold says
so. --background stop stops them when CMD ends; --background keep releases KEY
though they run, for a CMD that starts a daemon.`,
		Example: `  leasehold run nightly-report -- ./report.sh
  leasehold run -n nightly-report -- ./report.sh      # skip it if held
  leasehold run -w 30s deploy/prod -- make deploy
  leasehold run -p 3 gpu -- ./render frame-17         # three at a time
  leasehold run -k src -k dst -- ./move.sh            # both, or wait
  leasehold run --any -k gpu0 -k gpu1 -- ./train.sh   # one of them`,
		Annotations:       map[string]string{runsCMD: always},
		ValidArgsFunction: a.completeKeys(anyRecord),
		Args:              keyAndCommand,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.run(cmd, &f, args[:cmd.ArgsLenAtDash()], args[cmd.ArgsLenAtDash():])
		},
	}
	fl := cmd.Flags()
	waitFlags(fl, &f.wantedFlags)
	fl.IntVarP(&f.conflictCode, "conflict-exit-code", "E", failure.CodeNotGranted, "exit with `CODE` if KEY was not granted")
	fl.IntVarP(&f.Permits, "permits", "p", 1, "allow `N` holders of KEY at a time")
	severalFlags(fl, &f.wantedFlags)
	recordFlags(fl, &f.wantedFlags)
	commandFlags(fl, &f)
	fl.StringVar(&f.metrics, "metrics", "", "write metrics of this run to `FILE`, NAME.prom, for the node exporter's textfile collector")
	return cmd
}

const dataUsage = "store `TEXT` in the record; @FILE reads it from FILE"

// waitFlags say how long KEY is waited for.
func waitFlags(fl *pflag.FlagSet, f *wantedFlags) {
	fl.BoolVarP(&f.NoWait, "nonblock", "n", false, "do not wait for a holder that lives; one that looks dead is watched for its lease")
	fl.VarP(durationFlag{d: &f.Wait}, "wait", "w", "wait at most `DURATION` (default: forever), then try as -n does")
	lineFlag(fl, f)
}

// lineFlag says in which order processes wait.
func lineFlag(fl *pflag.FlagSet, f *wantedFlags) {
	fl.BoolVar(&f.InLine, "line", false, "wait in line, which the record keeps: first come, first served, among those who give it")
}

// recordFlags say what is written.
func recordFlags(fl *pflag.FlagSet, f *wantedFlags) {
	fl.VarP(durationFlag{d: &f.Lease}, "lease", "l", "a dead holder blocks KEY for `DURATION`")
	fl.StringVar(&f.SortKey, "sort-key", "", "sort key `VALUE`, in a table that has one")
	fl.StringVar(&f.data.text, "data", "", dataUsage)
}

// commandFlags say how CMD runs under KEY.
func commandFlags(fl *pflag.FlagSet, f *runFlags) {
	fl.StringVarP(&f.signal, "signal", "s", "TERM", "stop CMD with `SIGNAL` if the lock is lost")
	fl.VarP(durationFlag{d: &f.grace}, "grace", "g", "wait `DURATION` from SIGNAL to KILL; both are sent before trust ends")
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
		return usageOf(cmd, "KEY and CMD are missing")
	case len(args) == 0, len(args) == 1 && !named:
		return usageOf(cmd, "CMD is missing: put it after --")
	case named:
		return usageOf(cmd, "put -- before CMD")
	default:
		return usageOf(cmd, "put -- between KEY and CMD")
	}
	if dash > 0 || !named {
		if err := oneKey(cmd, args[:dash]); err != nil {
			return err
		}
	}
	if dash == len(args) {
		return usageOf(cmd, "CMD is missing after --")
	}
	return nil
}

func (a *app) run(cmd *cobra.Command, f *runFlags, args, command []string) error {
	f.name(args)
	if f.metrics != "" {
		p, err := a.flags.Place("")
		if err != nil {
			return err
		}
		if a.metrics, err = textfile.Open(f.metrics, a.Now(), p, f.Keys, f.SortKey); err != nil {
			return err
		}
	}
	if err := a.checkSeveral(cmd, &f.wantedFlags); err != nil {
		return err
	}
	j, err := a.newJob(cmd, f, command)
	if err != nil {
		return err
	}
	if err := checkPermits(cmd, &f.Wanted); err != nil {
		return err
	}
	if f.conflictCode < 0 || f.conflictCode > 255 {
		return usageOf(cmd, "-E %d: use an exit code from 0 to 255", f.conflictCode)
	}
	if err := a.say.OpenEvents(f.events, a.Now()); err != nil {
		return err
	}
	s, err := a.open(cmd, store.Opening{Make: true})
	if err != nil {
		return err
	}
	defer s.Close()
	seeker, err := a.seek(s, &f.wantedFlags)
	if err != nil {
		return err
	}
	defer seeker.Close()
	h, err := seeker.Acquire(cmd.Context())
	switch {
	case failure.NotGranted(err):
		return failure.Exit(f.conflictCode, err)
	case err != nil:
		return failure.Answer(err)
	}
	a.metrics.Granted(a.Now())
	_, err = h.Run(j)
	a.metrics.Ended(a.Now())
	return err
}

// seek is ready to wait for what the flags say.
func (a *app) seek(s *store.Store, f *wantedFlags) (*holding.Seeker, error) {
	var err error
	if f.Data, err = f.data.option(a.Stdin); err != nil { // while a signal still ends the wait for it
		return nil, err
	}
	return holding.Seek(holding.User{Settings: &a.flags.Settings, Environ: a.Environ, Say: a.say, Now: a.Now}, s, f.Wanted), nil
}

// newJob checks the flags that say how CMD runs, and finds CMD.
func (a *app) newJob(cmd *cobra.Command, f *runFlags, command []string) (process.Job, error) {
	_, skew, err := a.completeWanted(cmd, &f.wantedFlags)
	if err != nil {
		return process.Job{}, err
	}
	if err := completeGrace(cmd, f, skew); err != nil {
		return process.Job{}, err
	}
	stop, err := process.ParseSignal(f.signal)
	if err != nil {
		return process.Job{}, usageOf(cmd, "--signal: %v", err)
	}
	if !slices.Contains(process.BackgroundModes, f.background) {
		return process.Job{}, usageOf(cmd, "--background %s: use %s", visible.Name(f.background), strings.Join(process.BackgroundModes, ", "))
	}
	path, err := process.Find(command[0])
	return process.Job{
		Cmd:        &exec.Cmd{Path: path, Args: command, Stdin: a.Stdin, Stdout: a.Env.Stdout, Stderr: a.Env.Stderr},
		Executable: a.Executable, Stop: stop, Grace: f.grace, Background: f.background,
	}, err
}

// completeGrace checks the time that CMD has to stop, or sets its default. In
// layouts that store an expiry time, trust ends earlier by the clock skew that
// the layout allows for.
func completeGrace(cmd *cobra.Command, f *runFlags, skew time.Duration) error {
	usable, half := f.Lease-skew, "half the lease"
	if skew > 0 {
		half = fmt.Sprintf("half the lease, less %s for clocks that differ", wording.Duration(skew))
	}
	if !cmd.Flags().Changed("grace") {
		f.grace = min(f.grace, usable/4)
	}
	if f.grace >= usable/2 {
		return usageOf(cmd, "--grace %s is too long: it must be below %s (%s)", wording.Duration(f.grace), wording.Duration(usable/2), half)
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
		return usageOf(cmd, "--line and -n: who does not wait stands in no line: use one of them")
	case f.Permits > 1 || len(f.more) > 0:
		return usageOf(cmd, "--line is for one key: leave it out")
	case !can:
		return usageOf(cmd, "--line: records of layout %s have no line: leave it out", l.Name())
	}
	return nil
}

// completeWanted checks the flags and reads those that the environment may set. It
// returns the layout, and by how much clocks may differ in it.
func (a *app) completeWanted(cmd *cobra.Command, f *wantedFlags) (layout.Layout, time.Duration, error) {
	f.data.given = cmd.Flags().Changed("data")
	waits := cmd.Flags().Changed("wait")
	if f.NoWait && waits {
		return nil, 0, usageOf(cmd, "--nonblock and --wait: use one of them")
	}
	f.NoWait = f.NoWait || waits && f.Wait == 0
	var err error
	if f.Owner, err = chooseOwner(f.Owner, &a.flags.Settings); err != nil {
		return nil, 0, err
	}
	if f.Lease, err = chooseLease(f.Lease, cmd.Flags().Changed("lease"), &a.flags.Settings); err != nil {
		return nil, 0, err
	}
	l, proto, err := a.chooseProtocol(cmd)
	if err != nil {
		return nil, 0, err
	}
	if err := checkLine(cmd, f, l, proto); err != nil {
		return nil, 0, err
	}
	return l, proto.Skew(), refuseShortLease(cmd, f.Lease, l, proto.Skew())
}
