package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/table"
)

const (
	doctorTime   = time.Minute     // for all checks
	doctorTries  = 3               // of one request
	measureTime  = 5 * time.Second // for the requests that are timed
	measureCount = 100
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
			if f.lease, err = chooseLease(f.lease, cmd.Flags().Changed("lease"), a.Env); err != nil {
				return err
			}
			switch table.Access(f.access) {
			case table.Use, table.Operate, table.Read:
			default:
				return usageOf(cmd, "unknown access %s: it can be use, operate or read", printable(f.access))
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

// verdict is the result of a check.
type verdict string

const (
	fine     verdict = "ok"
	warning  verdict = "warning"
	fatal    verdict = "fatal"   // locks would fail or be unsafe
	notKnown verdict = "unknown" // it cannot be found out, and that may be as it should
)

// finding is one line of doctor, or of table check.
type finding struct {
	Check  string         `json:"check"`
	State  verdict        `json:"state"`
	What   string         `json:"what"`
	Do     string         `json:"do,omitempty"`
	Values map[string]any `json:"values,omitempty"`
}

// doctor is one run of the command.
type doctor struct {
	app   *app
	flags doctorFlags
	place place
	store *store
	proto protocol.Protocol
	probe *probe

	testKey leasehold.Key // to write to
	cannot  []string      // actions that are denied, or were refused

	worst  verdict // fine, warning or fatal
	failed bool    // something could not be found out: exit code 2
	err    error   // of the output

	interrupted func() bool // by a signal: requests fail then, and say nothing
}

func (a *app) doctor(cmd *cobra.Command, f doctorFlags) error {
	l, proto, err := a.chooseProtocol(cmd)
	if err != nil {
		return err
	}
	d := &doctor{app: a, flags: f, probe: &probe{}, worst: fine, proto: proto}
	if err := refuseShortLease(cmd, f.lease, l, proto.Skew()); err != nil {
		return err
	}
	if d.place, err = choosePlace(a.flags, a.Env, ""); err != nil {
		return err
	}
	ctx, done := a.untilSignal(cmd.Context())
	defer done()
	d.interrupted = func() bool { return interrupted(context.Cause(ctx)) != nil }
	ctx, cancel := context.WithTimeoutCause(ctx, doctorTime, fmt.Errorf("not done after %s", age(doctorTime)))
	defer cancel()
	err = d.examine(ctx, cmd)
	if s := interrupted(context.Cause(ctx)); s != nil {
		return s
	}
	switch {
	case err != nil:
		return err
	case d.err != nil:
		return d.err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case d.failed:
		return exit(codeTrouble, nil)
	case d.worst != fine:
		return exit(codeNo, nil)
	}
	return nil
}

// examine makes all checks. Its error is that of the command line; of all else the
// findings speak.
func (d *doctor) examine(ctx context.Context, cmd *cobra.Command) error {
	if d.place.file != "" && !d.checkFile(ctx, cmd) {
		return nil
	}
	s, err := d.app.openAny(cmd, "")
	switch {
	case err != nil && d.place.file == "":
		return err
	case err != nil:
		d.trouble("open", errorText(err, d.place.table+" in "+d.place.file))
		return nil
	}
	defer s.close()
	s.db = d.probe.watch(s.db)
	d.store = s
	if _, err := s.locks(d.lockConfig()); err != nil {
		return err
	}
	if s.file == "" {
		d.sayStore()
		d.checkRegion()
		d.checkIdentity(ctx)
	}
	if !d.checkTable(ctx) {
		return nil
	}
	if s.file != "" { // nobody denies, throttles or bills anything
		d.checkLock(ctx)
		return nil
	}
	if d.checkPermissions(ctx) {
		d.checkLock(ctx)
		d.checkThrottling()
		d.checkConnections()
		d.checkClock()
	}
	return nil
}

// cleanUp is the check that says that something is left in the table.
const cleanUp = "clean-up"

// say writes a line as soon as it is known.
func (d *doctor) say(f finding) {
	if d.err != nil || f.Check != cleanUp && d.interrupted() {
		return
	}
	if f.State == fatal || f.State == warning && d.worst == fine {
		d.worst = f.State
	}
	d.err = d.app.writeFinding(f)
}

// writeFinding writes a line to standard output.
func (a *app) writeFinding(f finding) error {
	a.say.clear()
	f.What, f.Do = oneLine(f.What), oneLine(f.Do)
	var err error
	switch {
	case a.flags.json:
		err = json.NewEncoder(a.Stdout).Encode(f)
	case isTerminal(a.Stdout):
		what := f.What
		if f.Do != "" {
			what += ": " + f.Do
		}
		_, err = fmt.Fprintf(a.Stdout, "%s  %-18s  %s\n", f.State.paint(a.get("NO_COLOR") == ""), f.Check, what)
	default:
		_, err = fmt.Fprintln(a.Stdout, strings.Join([]string{string(f.State), f.Check, f.What, f.Do}, "\t"))
	}
	return err
}

// paint pads the verdict to a column, and colours one that is not ok.
func (v verdict) paint(colour bool) string {
	const red, yellow, plain = "\x1b[31m", "\x1b[33m", "\x1b[0m"
	text := fmt.Sprintf("%-7s", string(v))
	switch {
	case colour && v == fatal:
		return red + text + plain
	case colour && v == warning:
		return yellow + text + plain
	}
	return text
}

// trouble says that something could not be found out, and that doctor ends.
func (d *doctor) trouble(check, why string) {
	d.failed = true
	f := finding{Check: check, State: fatal, What: why}
	if strings.HasPrefix(why, "no connection to ") || why == "no answer in time" {
		f.Do = adviceUnreachable
	}
	d.say(f)
}

// progress says what is being done, on a terminal.
func (d *doctor) progress(what string) {
	if d.app.say.rewrites() {
		d.app.say.rewrite(what)
	}
}

// ask sends a request until it is answered, a few times: one packet that was lost,
// or one request that was throttled, says little.
func (d *doctor) ask(ctx context.Context, send func(context.Context) error) error {
	for n := 1; ; n++ {
		within, cancel := context.WithTimeout(ctx, attempts.Limit)
		err := send(within)
		cancel()
		cause := decide.Classify(err).Cause
		if cause != decide.Unreachable && cause != decide.Busy || n == doctorTries || !sleep(ctx, time.Duration(n)*100*time.Millisecond) {
			return err
		}
	}
}
