// Package hold has the commands that hold keys: run, elect, acquire, renew and release.
//
//	run.go    run: acquires the keys, holds them while CMD runs, and releases them; the flags that
//	          elect and acquire share with run
//	elect.go  elect, also with --watch and --step-down
//	grant.go  acquire, renew, release: a grant outlives the command
//
// Package internal/cli/holding implements acquiring, holding and releasing keys. Package
// internal/cli/process starts and stops CMD.
package hold

import (
	"cmp"
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
	"github.com/leasehold-go/leasehold/internal/cli/process"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/textfile"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/visible"
	"github.com/leasehold-go/leasehold/semaphore"
)

// Commands builds the cobra commands of this package. They share one Invocation, which is
// one run of leasehold.
type Commands struct{ *invocation.Invocation }

// defaultGrace is the default of --grace, unless the lease is short. For a short lease, the default
// is a quarter of the lease, or less with a MaxSkew: half of the limit that graceWithin computes.
const defaultGrace = time.Second

type runFlags struct {
	wantedFlags
	conflictCode int
	signal       string
	grace        arguments.Duration
	background   string
	withParent   bool
	events       string
	metrics      string
}

// Run returns the command "leasehold run".
func (c *Commands) Run() *cobra.Command {
	f := runFlags{wantedFlags: wantedFlags{lease: arguments.Lasting(protocol.DefaultLease)}, grace: arguments.Lasting(defaultGrace)}
	cmd := &cobra.Command{
		Use:               "run KEY [flags] -- CMD [ARG...]",
		Short:             "Hold KEY while CMD runs",
		Annotations:       map[string]string{arguments.RunsCMD: arguments.Always},
		ValidArgsFunction: c.AnyKey,
		Args:              keyAndCommand,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.run(cmd, &f, args[:cmd.ArgsLenAtDash()], args[cmd.ArgsLenAtDash():])
		},
	}
	fl := cmd.Flags()
	waitFlags(fl, &f.wantedFlags)
	fl.IntVarP(&f.conflictCode, "conflict-exit-code", "E", failure.CodeNotGranted, "exit `CODE` if KEY was not granted")
	fl.IntVarP(&f.Permits, "permits", "p", 0, "allow `N` at once: hold one of KEY/0 to KEY/N-1")
	fl.StringArrayVarP(&f.more, "key", "k", nil, "hold `KEY` too; may be repeated")
	fl.BoolVar(&f.Any, "any", false, "hold only one of several keys, the first free one")
	f.every.Min = protocol.ShortestPeriod
	fl.Var(&f.every, "every", "run CMD once in each `DURATION` of UTC")
	fl.Var(&f.once, "once", "run CMD once for `LABEL`: a date, a commit")
	recordFlags(fl, &f.wantedFlags)
	commandFlags(fl, &f)
	fl.StringVar(&f.metrics, "metrics", "", "write metrics to `FILE`, NAME.prom")
	return cmd
}

// commandFlags adds to fl the flags about CMD, such as --signal, for run and elect.
func commandFlags(fl *pflag.FlagSet, f *runFlags) {
	fl.StringVarP(&f.signal, "signal", "s", "TERM", "stop CMD by `SIGNAL` on loss")
	fl.VarP(&f.grace, "grace", "g", "send KILL `DURATION` after SIGNAL")
	fl.StringVar(&f.background, "background", process.BackgroundWait, "for processes that outlive CMD, `MODE`: wait, stop, keep")
	fl.BoolVar(&f.withParent, "die-with-parent", false, "end when the process that started this ends")
	fl.StringVar(&f.events, "events", "", "append events to `FD|FILE` (help events)")
}

// keyAndCommand is a cobra.PositionalArgs that accepts KEY -- CMD [ARG...]. KEY may be
// missing if the flag --key is given.
func keyAndCommand(cmd *cobra.Command, args []string) error {
	dash := cmd.ArgsLenAtDash()
	named := cmd.Flags().Changed("key") // always false in elect, which has no --key
	switch {
	case dash >= 0:
	case len(args) == 0 && !named:
		return failure.MisuseOf(cmd, "KEY and CMD are missing")
	case len(args) == 0, len(args) == 1 && !named:
		return failure.MisuseOf(cmd, "CMD is missing: put it after --")
	case named:
		return failure.MisuseOf(cmd, "put -- before CMD")
	default:
		return failure.MisuseOf(cmd, "put -- between KEY and CMD")
	}
	if dash > 0 || !named {
		if err := arguments.OneKey(cmd, args[:dash]); err != nil {
			return err
		}
	}
	if dash == len(args) {
		return failure.MisuseOf(cmd, "CMD is missing after --")
	}
	return nil
}

// wantedFlags contains the values of the flags that say which keys to hold, and how. The
// method computeWanted of Commands computes the embedded Wanted from these values.
type wantedFlags struct {
	holding.Wanted
	more  []string // values of --key: keys to hold besides KEY
	wait  arguments.Duration
	lease arguments.Duration
	once  arguments.Text     // value of --once: label of the work that is to be done once
	every arguments.Duration // value of --every: length of the period in which the work is done once
	data  arguments.Data

	records  store.Records   // layout and clock error (MaxSkew) of the table's records
	orphaned <-chan struct{} // closed when the parent process has ended; nil without --die-with-parent
}

// waitFlags adds to fl the flags that limit the wait for KEY: --nonblock and --wait.
func waitFlags(fl *pflag.FlagSet, f *wantedFlags) {
	fl.BoolVarP(&f.NoWait, "nonblock", "n", false, "do not wait for a live holder, but observe one that appears dead for its lease")
	fl.VarP(&f.wait, "wait", "w", "wait at most `DURATION` (default: forever)")
}

// recordFlags adds to fl the flags about the record of KEY: --lease, --sort-key and --data.
func recordFlags(fl *pflag.FlagSet, f *wantedFlags) {
	fl.VarP(&f.lease, "lease", "l", "a dead holder blocks KEY for `DURATION`")
	arguments.SortKey(fl, &f.SortKey)
	f.data.Flag(fl)
}

// setKeys sets f.Keys to args and the values of --key, without duplicates.
func (f *wantedFlags) setKeys(args []string) {
	for _, key := range slices.Concat(args, f.more) {
		if !slices.Contains(f.Keys, key) {
			f.Keys = append(f.Keys, key)
		}
	}
}

// checkSeveral returns an error if the user combined several keys, --any and --permits in a
// way that leasehold does not support.
func checkSeveral(cmd *cobra.Command, f *wantedFlags) error {
	keys := f.Keys
	counted := cmd.Flags().Changed("permits")
	broken := slices.IndexFunc(keys, func(key string) bool { return strings.Contains(key, "\n") })
	switch {
	case slices.Contains(keys, ""):
		return failure.MisuseOf(cmd, "KEY is empty")
	case broken >= 0 && len(keys) > 1 && !f.Any:
		return failure.MisuseOf(cmd, "KEY %s has a line break, and CMD gets several keys one a line: hold it alone", wording.Name(keys[broken]))
	case counted && (f.Permits < 1 || f.Permits > semaphore.MostPermits):
		return failure.MisuseOf(cmd, "-p %d: use 1 to %d permits", f.Permits, semaphore.MostPermits)
	case counted && f.Any:
		return failure.MisuseOf(cmd, "-p and --any: use one of them")
	case counted && len(keys) > 1:
		return failure.MisuseOf(cmd, "-p and several keys: use one of them")
	}
	return nil
}

// completeOnce checks --every and --once. If one of the flags is given, completeOnce sets
// f.Once to the corresponding option of package leasehold.
func (f *wantedFlags) completeOnce(cmd *cobra.Command) error {
	labelled, periodic := f.once.Given, f.every.Given
	name, problem, once := "--every", protocol.PeriodProblem(f.every.Duration), leasehold.Every(f.every.Duration)
	if labelled {
		name, problem, once = "--once", protocol.LabelProblem(f.once.Value), leasehold.Once(f.once.Value)
	}
	_, marks := f.records.Proto.(protocol.Native)
	switch {
	case !labelled && !periodic:
		return nil
	case labelled && periodic:
		return failure.MisuseOf(cmd, "--every and --once: use one of them")
	case f.Permits > 0 || len(f.more) > 0:
		return failure.MisuseOf(cmd, "%s is for one key: leave it out, or -p and -k", name)
	case !marks:
		return failure.MisuseOf(cmd, "%s: records of layout %s do not say what was done: leave it out, or give each day a key of its own", name, f.records.Layout.Name())
	case problem != "":
		return failure.MisuseOf(cmd, "%s: %s", name, problem)
	}
	f.Once = once
	return nil
}

// computeWanted checks the flags and computes f.Wanted. For flags that the user did not
// give, it reads the environment variables.
func (c *Commands) computeWanted(cmd *cobra.Command, f *wantedFlags) (err error) {
	if f.NoWait && f.wait.Given {
		return failure.MisuseOf(cmd, "--nonblock and --wait: use one of them")
	}
	f.Wait = f.wait.Duration
	f.NoWait = f.NoWait || f.wait.Given && f.Wait == 0
	if f.Owner, err = c.Settings.Owner(); err != nil {
		return err
	}
	if f.Lease, err = c.Settings.Lease(f.lease); err != nil {
		return err
	}
	if f.records, err = c.Settings.Records(); err != nil {
		return err
	}
	if err := f.completeOnce(cmd); err != nil {
		return err
	}
	return f.records.RefuseShortLease(cmd, f.Lease)
}

// seeking opens the store and calls fn with a Seeker, which acquires the keys that the
// flags describe.
func (c *Commands) seeking(cmd *cobra.Command, f *wantedFlags, fn func(*store.Store, *holding.Seeker) error) error {
	began, wait := time.Now(), cmp.Or(f.Wait, store.Forever) // --wait also limits how long Open waits for another process to unlock the file of a local store
	if f.NoWait {
		wait = 0
	}
	s, err := c.Open(cmd, store.Opening{Make: true, Wait: wait})
	if err != nil {
		return err
	}
	defer s.Close()
	f.Waited = time.Since(began)
	if f.Data, err = f.data.Option(c.Stdin); err != nil { // may wait for standard input; not called earlier, because only from here on a signal can end this wait
		return err
	}
	if f.Data == nil && f.Permits > 0 && s.Layout.Capabilities().Data { // "leasehold ls" shows the text set here beside each permit
		f.Data = leasehold.WithData(fmt.Appendf(nil, "one of %s", wording.Count(f.Permits, "permit", "permits")))
	}
	seeker := holding.Seek(holding.User{Settings: &c.Settings, Environ: c.Environ, Say: c.Say, Now: c.Now, Orphaned: f.orphaned}, s, f.Wanted)
	defer seeker.Close()
	return fn(s, seeker)
}

func (c *Commands) run(cmd *cobra.Command, f *runFlags, args, command []string) error {
	f.setKeys(args)
	if f.metrics != "" {
		p, err := c.Settings.Place("")
		if err != nil {
			return err
		}
		if c.Metrics, err = textfile.Open(f.metrics, c.Now(), p, f.Keys, f.SortKey); err != nil {
			return err
		}
	}
	if err := checkSeveral(cmd, &f.wantedFlags); err != nil {
		return err
	}
	j, err := c.newJob(cmd, f, command)
	if err != nil {
		return err
	}
	if f.conflictCode < 0 || f.conflictCode > 255 {
		return failure.MisuseOf(cmd, "-E %d: use an exit code from 0 to 255", f.conflictCode)
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
		c.Metrics.Granted = c.Now()
		_, err = h.Run(j)
		c.Metrics.Ended = c.Now()
		return err
	})
}

// newJob returns the process.Job for CMD. It checks the flags about CMD, and finds the
// executable of CMD.
func (c *Commands) newJob(cmd *cobra.Command, f *runFlags, command []string) (process.Job, error) {
	if err := c.computeWanted(cmd, &f.wantedFlags); err != nil {
		return process.Job{}, err
	}
	grace, err := f.graceWithin(cmd)
	if err != nil {
		return process.Job{}, err
	}
	stop, err := process.ParseSignal(f.signal)
	if err != nil {
		return process.Job{}, failure.MisuseOf(cmd, "--signal: %v", err)
	}
	if !slices.Contains(process.BackgroundModes, f.background) {
		return process.Job{}, failure.MisuseOf(cmd, "--background %s: use %s", visible.Name(f.background), strings.Join(process.BackgroundModes, ", "))
	}
	if f.withParent {
		if f.orphaned, err = process.ParentEnd(); err != nil {
			return process.Job{}, failure.MisuseOf(cmd, "%v", err)
		}
	}
	path, err := process.Find(command[0])
	return process.Job{
		Cmd:        &exec.Cmd{Path: path, Args: command, Stdin: c.Stdin, Stdout: c.Env.Stdout, Stderr: c.Env.Stderr},
		Executable: c.Executable, Stop: stop, Grace: grace, Background: f.background,
	}, err
}

// graceWithin returns how long CMD may take to stop before it is killed. This grace must be below
// 5/9 of the trusted time: half the lease if there is no MaxSkew. A renewal normally begins while
// at least 6/9 is left, so it has at least 1/9 before leasehold stops CMD.
func (f *runFlags) graceWithin(cmd *cobra.Command) (time.Duration, error) {
	skew := f.records.Proto.Skew()
	trust := lease.Usual(f.Lease, skew).Trust()
	longest, half := durations.Times(trust/9, 5).Truncate(time.Millisecond), "half the lease"
	if skew > 0 {
		half = fmt.Sprintf("a lease of %s is trusted for %s: clocks may differ by %s", wording.Duration(f.Lease), wording.Duration(trust), wording.Duration(skew))
	}
	grace := f.grace.Duration
	if !f.grace.Given {
		grace = min(grace, longest/2)
	}
	if grace >= longest {
		return 0, failure.MisuseOf(cmd, "--grace %s is too long: it must be below %s (%s)", wording.Duration(grace), wording.Duration(longest), half)
	}
	return grace, nil
}
