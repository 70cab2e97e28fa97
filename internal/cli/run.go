package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/process"
	"github.com/leasehold-go/leasehold/internal/cli/store"
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

// acquireFlags are the flags for acquiring a lock or a permit.
type acquireFlags struct {
	nonblock bool
	wait     time.Duration
	lease    time.Duration
	sortKey  string
	data     dataFlag
	record   leasehold.RecordOption // that data stands for; nil: none
	owner    string
	permits  int  // how many owners may hold KEY at a time; 0 or 1: a lock
	counted  bool // -p was given: with 1, KEY may be a semaphore all the same
	detached bool // the grant outlives the command

	several severalFlags

	client  *lockClient // of an earlier term of elect; nil: none yet
	acquire acquireFunc // nil: acquire the lock of KEY, or a permit
}

// acquireFunc replaces Client.Acquire.
type acquireFunc func(ctx context.Context, locks *leasehold.Client, key string, opts ...leasehold.AcquireOption) (*leasehold.Lock, error)

type runFlags struct {
	acquireFlags
	conflictCode int
	signal       string
	grace        time.Duration
	background   string
	events       string
	metrics      string
}

func (a *app) newRun() *cobra.Command {
	f := runFlags{acquireFlags: acquireFlags{lease: defaultLease}, grace: defaultGrace}
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
	fl.BoolVarP(&f.nonblock, "nonblock", "n", false, nonblockUsage)
	fl.VarP(durationFlag{d: &f.wait}, "wait", "w", waitUsage)
	fl.IntVarP(&f.conflictCode, "conflict-exit-code", "E", failure.CodeNotGranted, "exit with `CODE` if KEY was not granted")
	fl.IntVarP(&f.permits, "permits", "p", 1, "allow `N` holders of KEY at a time")
	f.several.register(cmd)
	fl.VarP(durationFlag{d: &f.lease}, "lease", "l", "a dead holder blocks KEY for `DURATION`")
	fl.StringVar(&f.sortKey, "sort-key", "", "sort key `VALUE`, in a table that has one")
	fl.StringVar(&f.data.text, "data", "", dataUsage)
	fl.StringVarP(&f.signal, "signal", "s", "TERM", signalUsage)
	fl.VarP(durationFlag{d: &f.grace}, "grace", "g", graceUsage)
	fl.StringVar(&f.background, "background", process.BackgroundWait, backgroundUsage)
	fl.StringVar(&f.owner, "owner", "", "`NAME` shown to others (default host/pid/random)")
	fl.StringVar(&f.events, "events", "", eventsUsage)
	fl.StringVar(&f.metrics, "metrics", "", "write metrics of this run to `FILE`, NAME.prom, for the node exporter's textfile collector")
	return cmd
}

// Usage of flags that several commands share.
const (
	dataUsage       = "store `TEXT` in the record; @FILE reads it from FILE"
	nonblockUsage   = "do not wait for a holder that lives; one that looks dead is watched for its lease"
	waitUsage       = "wait at most `DURATION` (default: forever), then try as -n does"
	signalUsage     = "stop CMD with `SIGNAL` if the lock is lost"
	eventsUsage     = "write events as JSON to `FD|FILE`: the number of a file descriptor, or a file to append to (leasehold help events)"
	backgroundUsage = "what becomes of processes that outlive CMD, `MODE`: wait, stop, or keep"
	graceUsage      = "wait `DURATION` from SIGNAL to KILL; both are sent before trust ends"
)

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
	keys := f.several.named(args)
	if err := a.startMetrics(f.metrics, keys, f.sortKey); err != nil {
		return err
	}
	if err := f.several.check(cmd, a, keys); err != nil {
		return err
	}
	j, err := a.newJob(cmd, f, command)
	if err != nil {
		return err
	}
	if err := checkPermits(cmd, &f.acquireFlags); err != nil {
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
	switch {
	case !f.counted || f.sortKey != "":
		keys, err = a.withoutNested(cmd.Context(), s, keys, f)
	case !f.nonblock:
		err = a.refuseNestedPermit(s, keys[0])
	}
	if err != nil {
		return f.refused(err)
	}

	if f.record, err = f.data.option(a.Stdin); err != nil { // while a signal still ends the wait for it
		return err
	}
	signals := process.CatchSignals()
	defer signals.Release()
	renewals := a.newRenewals(s)
	g, err := a.acquireFor(cmd.Context(), s, keys, &f.acquireFlags, signals, renewals.event)
	if err != nil {
		return f.refused(err)
	}
	defer store.CloseLocks(g.client.Client)
	a.metrics.noteGranted(a.Now())
	_, err = a.runUnder(s, g.hold, signals, renewals, j)
	a.metrics.noteEnded(a.Now())
	return err
}

// refused gives err the exit code that -E sets if KEY was not granted.
func (f *runFlags) refused(err error) error {
	if failure.NotGranted(err) {
		return failure.Exit(f.conflictCode, err)
	}
	return failure.Answer(err)
}

// newJob checks the flags that say how CMD runs, and finds CMD.
func (a *app) newJob(cmd *cobra.Command, f *runFlags, command []string) (process.Job, error) {
	if err := a.completeAcquire(cmd, &f.acquireFlags); err != nil {
		return process.Job{}, err
	}
	if err := a.completeGrace(cmd, f); err != nil {
		return process.Job{}, err
	}
	stop, err := process.ParseSignal(f.signal)
	if err != nil {
		return process.Job{}, usageOf(cmd, "--signal: %v", err)
	}
	if !slices.Contains(process.BackgroundModes, f.background) {
		return process.Job{}, usageOf(cmd, "--background %s: use %s", visible.Name(f.background), strings.Join(process.BackgroundModes, ", "))
	}
	path, err := findCommand(command[0])
	return process.Job{
		Cmd:        &exec.Cmd{Path: path, Args: command, Stdin: a.Stdin, Stdout: a.Env.Stdout, Stderr: a.Env.Stderr},
		Executable: a.Executable, Stop: stop, Grace: f.grace, Background: f.background,
	}, err
}

// completeGrace checks the time that CMD has to stop, or sets its default. In
// layouts that store an expiry time, trust ends earlier by the clock skew that
// the layout allows for.
func (a *app) completeGrace(cmd *cobra.Command, f *runFlags) error {
	l, proto, err := a.chooseProtocol(cmd)
	if err != nil {
		return err
	}
	if err := refuseShortLease(cmd, f.lease, l, proto.Skew()); err != nil {
		return err
	}
	usable, half := f.lease-proto.Skew(), "half the lease"
	if proto.Skew() > 0 {
		half = fmt.Sprintf("half the lease, less %s for clocks that differ", wording.Duration(proto.Skew()))
	}
	if !cmd.Flags().Changed("grace") {
		f.grace = min(f.grace, usable/4)
	}
	if f.grace >= usable/2 {
		return usageOf(cmd, "--grace %s is too long: it must be below %s (%s)", wording.Duration(f.grace), wording.Duration(usable/2), half)
	}
	return nil
}

// completeAcquire checks the flags and reads those that the environment may set.
func (a *app) completeAcquire(cmd *cobra.Command, f *acquireFlags) error {
	var err error
	if f.lease, err = chooseLease(f.lease, cmd.Flags().Changed("lease"), &a.flags.Settings); err != nil {
		return err
	}
	if f.lease < time.Second {
		return usageOf(cmd, "a lease of %s is too short: use at least 1s", wording.Duration(f.lease))
	}
	f.data.given = cmd.Flags().Changed("data")
	waits := cmd.Flags().Changed("wait")
	if f.nonblock && waits {
		return usageOf(cmd, "--nonblock and --wait: use one of them")
	}
	f.nonblock = f.nonblock || waits && f.wait == 0
	f.owner, err = chooseOwner(f.owner, &a.flags.Settings)
	return err
}

// findCommand finds CMD. It is called before the wait for KEY, which would be in
// vain if there is no CMD.
func findCommand(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", startError(name, err)
	}
	return path, nil
}

// startError says why CMD could not be started, with the exit code for that.
func startError(name string, err error) error {
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return failure.Exit(failure.CodeNoCommand, misuse.Errorf("%s: command not found", visible.Name(name)))
	case errors.Is(err, exec.ErrDot):
		return failure.Exit(failure.CodeNoCommand, misuse.Errorf("%s is only in the current directory: call it ./%s", visible.Name(name), name))
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	var look *exec.Error
	if errors.As(err, &look) {
		err = look.Err
	}
	return failure.Exit(failure.CodeNotExec, misuse.Errorf("%s cannot be executed: %v", visible.Name(name), err))
}

// commandEnv returns CMD's environment, with the lock's key, owner, token and
// table.
func (a *app) commandEnv(s *store.Store, h hold) []string {
	lock := h.first()
	env := make([]string, 0, len(a.Environ)+8)
	for _, kv := range a.Environ {
		name, _, _ := strings.Cut(kv, "=")
		switch name {
		case "LEASEHOLD_KEY", "LEASEHOLD_SORT_KEY", "LEASEHOLD_OWNER", "LEASEHOLD_TOKEN", "LEASEHOLD_TABLE", "LEASEHOLD_FILE", "LEASEHOLD_LAYOUT",
			"LEASEHOLD_KEYS", "LEASEHOLD_TOKENS", heldVariable, "LEASEHOLD_REGION", "LEASEHOLD_PROFILE", "LEASEHOLD_ENDPOINT_URL":
			continue
		}
		env = append(env, kv)
	}
	set := func(name, value string) { env = append(env, name+"="+value) }
	set("LEASEHOLD_KEY", h.name) // of a permit too: the key that the user named
	if lock.Key().Sort != "" {
		set("LEASEHOLD_SORT_KEY", lock.Key().Sort)
	}
	if owner := lock.Record().Owner; owner != "" { // not every layout stores one
		set("LEASEHOLD_OWNER", owner)
	}
	set("LEASEHOLD_TOKEN", strconv.FormatInt(lock.Token(), 10))
	if s.File != "" {
		set("LEASEHOLD_FILE", s.File)
	}
	if s.File == "" || s.Table != store.DefaultTable {
		set("LEASEHOLD_TABLE", s.Table)
	}
	for i, said := range []string{a.flags.Region, a.flags.Profile, a.flags.Endpoint} {
		if s.File == "" && said != "" {
			set(store.AWSVariables[i], said)
		}
	}
	if len(h.locks) > 1 {
		set("LEASEHOLD_KEYS", h.lines(func(l *leasehold.Lock) string { return l.Key().Partition }))
		set("LEASEHOLD_TOKENS", h.lines(func(l *leasehold.Lock) string { return strconv.FormatInt(l.Token(), 10) }))
	}
	set(heldVariable, a.heldValue(s, h))
	if name := s.Layout.Name(); name != (layout.Native{}).Name() {
		set("LEASEHOLD_LAYOUT", name)
	}
	return env
}

// lockClient is a client whose events go to whoever follows it now.
type lockClient struct {
	*leasehold.Client
	follow atomic.Pointer[func(leasehold.Event)]
}

// lockClient returns a client for these flags: that of the term before, if there is one.
// What that term has left in the table it knows for its own.
func newLockClient(s *store.Store, f *acquireFlags) (*lockClient, error) {
	if f.client != nil {
		return f.client, nil
	}
	c := &lockClient{}
	var err error
	c.Client, err = s.Locks(leasehold.Config{Owner: f.owner, Lease: f.lease, SharedLease: f.several.shared, OnEvent: func(_ context.Context, e leasehold.Event) {
		if follow := c.follow.Load(); follow != nil {
			(*follow)(e)
		}
	}})
	return c, err
}

// granted is what is held, and the client that holds it.
type granted struct {
	client *lockClient
	hold   hold
}

// acquireFor acquires keys, and reports who holds it while it waits. A signal
// ends the wait.
func (a *app) acquireFor(ctx context.Context, s *store.Store, names []string, f *acquireFlags, signals *process.Signals,
	onEvent func(leasehold.Event), more ...leasehold.AcquireOption,
) (granted, error) {
	began := time.Now()
	g, err := a.ask(ctx, s, names, f, signals, onEvent, more)
	if f.wasTooShort(err) {
		store.CloseLocks(g.client.Client) // what it has sent is over, and in nobody's way
		g, err = a.ask(ctx, s, names, f.withoutWait(), signals, onEvent, more)
		err = f.afterWait(err, time.Since(began))
	}
	a.wait.end() // from now on failing renewals are reported instead
	if err != nil {
		if g.client != nil {
			store.CloseLocks(g.client.Client)
		}
		return granted{}, err
	}
	if n := a.wait.holdersSeen(); n > 0 && (!f.nonblock || time.Since(began) >= tryingAfter) {
		after := wording.Age(time.Since(began))
		if n > 1 {
			after += fmt.Sprintf(" and %d holders", n)
		}
		a.say.Text("granted %s after %s, token %d", g.hold, after, g.hold.first().Token())
	}
	return g, nil
}

// ask asks for keys once, and for as long as f says. With an error, too, it returns the
// client, if that is what it was asked with.
func (a *app) ask(ctx context.Context, s *store.Store, names []string, f *acquireFlags, signals *process.Signals,
	onEvent func(leasehold.Event), opts []leasehold.AcquireOption,
) (granted, error) {
	opts = slices.Clip(opts)
	if f.nonblock {
		opts = append(opts, leasehold.NoWaitUnlessDead())
	}
	if f.sortKey != "" {
		opts = append(opts, leasehold.WithSortKey(f.sortKey))
	}
	if f.record != nil {
		opts = append(opts, f.record)
	}

	wait := a.wait // late events still belong to this wait
	wait.tries(f.nonblock)
	var holders *permitHolders // nil for a lock
	client, err := newLockClient(s, f)
	if err != nil {
		return granted{}, err
	}
	follow := func(e leasehold.Event) {
		if e.Kind == leasehold.EventWaiting && holders != nil {
			holders.add(*e.Holder)
		}
		if e.Kind != leasehold.EventWaiting || wait.noteHolder(*e.Holder, holders) {
			onEvent(e)
		}
	}
	client.follow.Store(&follow)
	g := granted{client: client}
	keys, err := wantedKeys(s, client.Client, names, f)
	if err != nil {
		return g, err
	}
	switch {
	case f.permits > 1:
		holders = newPermitHolders(fmt.Sprintf("all %d permits of %s are held", len(keys), wording.Name(names[0])), keys)
	case f.several.any && len(keys) > 1:
		holders = newPermitHolders(wording.Keys(keys)+" are held", keys)
	}

	ctx, cancel := signals.Bind(ctx)
	defer cancel()
	if f.wait > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, f.wait, &failure.WaitedError{Wait: f.wait})
		defer stop()
	}
	if len(keys) > 1 && f.permits <= 1 {
		g.hold, err = acquireSeveral(ctx, s, client.Client, keys, f, holders, opts)
	} else {
		var lock *leasehold.Lock
		lock, err = acquireLockOrPermit(ctx, s, client.Client, names[0], f, holders, opts)
		g.hold = hold{names[0], []*leasehold.Lock{lock}, nil}
	}
	if cause := context.Cause(ctx); err != nil && cause != nil && failure.Interrupted(cause) != nil {
		err = cause
	}
	return g, err
}
