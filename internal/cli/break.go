package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/permits"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

type breakFlags struct {
	token     int64
	ifVersion string
	yes       bool
	sortKey   string
	reason    string
	damaged   bool
	store     string // the flags that name it, for a command to type
	ifRaw     string
	dead      bool
	checkFor  time.Duration
}

func (a *app) newBreak() *cobra.Command {
	f := breakFlags{checkFor: defaultCheckFor}
	cmd := &cobra.Command{
		Use:   "break KEY [flags]",
		Short: "Break one grant that is stuck",
		Long: `Free KEY, whoever holds it.

Shows the record, observes whether its holder still renews, and asks. Breaks
only that grant: if KEY has been granted again by then, nothing happens (exit
code 1). Of a semaphore it breaks one permit: the one with TOKEN. A live holder
may work on for some seconds: in that time only fenced writes are safe. The
record keeps who broke it, when and why, and the holder is told.

With --dead it breaks the grants of all dead holders of the keys that begin
with KEY, or of all keys: it observes the holders, shows each dead one as soon
as it is known, asks once when all are known or --for is over, and breaks those
that have not renewed since. Ctrl-C before the answer breaks nothing, after it
no more. Of all keys, it also ends the shared leases of dead clients, whose
rows nobody else looks for; that reads the table once more.

With --damaged it removes a record that does not read as a lock: it shows what
is stored, asks, and removes exactly that. See also leasehold get --raw.`,
		Example: `  leasehold break import/7 --reason "host is gone"
  leasehold break import/7 --token 1764230400000042 --yes
  leasehold break --dead import/
  leasehold break --damaged import/8`,
		ValidArgsFunction: a.completeKeys(heldRecord),
		Args: func(cmd *cobra.Command, args []string) error {
			if f.dead {
				return onePrefix(cmd, args)
			}
			return oneKey(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd, a.canAsk()); err != nil {
				return err
			}
			f.store = storeFlags(cmd)
			return a.onTable(cmd, a.breaker(), func(ctx context.Context, s *store.Store, locks *leasehold.Client) error {
				if f.reason != "" && !s.Layout.Capabilities().KeepOnRelease {
					return misuse.Errorf("--reason: layout %s keeps no record of a free key, so nobody could be told: leave out --reason", s.Layout.Name())
				}
				if f.dead {
					return a.breakDead(ctx, s, locks, strings.Join(args, ""), f)
				}
				key := store.CompleteKey(s.Layout, leasehold.Key{Partition: args[0], Sort: f.sortKey})
				if f.damaged {
					return a.breakDamaged(ctx, s, key, f)
				}
				return a.breakGrant(ctx, s, locks, key, f)
			})
		},
	}
	fl := cmd.Flags()
	fl.Int64Var(&f.token, "token", 0, "break only the grant with this `TOKEN`; needed with --yes")
	fl.StringVar(&f.ifVersion, "if-version", "", "break only if the record still has this `VERSION`; for grants of other libraries, which have no token")
	fl.BoolVarP(&f.yes, "yes", "y", false, "do not ask; without --dead, do not observe either")
	fl.StringVar(&f.reason, "reason", "", "`TEXT` that says why, for the record and its holder")
	fl.BoolVar(&f.dead, "dead", false, "break the grants of all dead holders of keys that begin with KEY")
	fl.Var(durationFlag{d: &f.checkFor}, "for", "with --dead, observe at most `DURATION`; holders not known by then are left alone; 0: until all are known")
	fl.BoolVar(&f.damaged, "damaged", false, "remove a record that does not read as a lock")
	fl.StringVar(&f.ifRaw, "if-raw", "", "with --damaged, remove only what leasehold get --raw wrote to `FILE`; needed with --yes")
	fl.StringVar(&f.sortKey, "sort-key", "", "sort key `VALUE`, in a table that has one")
	return cmd
}

// check refuses flags that do not go together.
func (f *breakFlags) check(cmd *cobra.Command, asks bool) error {
	one := f.token != 0 || f.ifVersion != ""
	switch {
	case cmd.Flags().Changed("reason") && strings.TrimSpace(f.reason) == "":
		return usageOf(cmd, "--reason is empty: say why, or leave it out")
	case protocol.ReasonProblem(f.reason) != "":
		return usageOf(cmd, "--reason: %s", protocol.ReasonProblem(f.reason))
	case f.dead && f.damaged:
		return usageOf(cmd, "--dead and --damaged: use one of them")
	case f.dead && (one || f.sortKey != ""):
		return usageOf(cmd, "--dead breaks all that are dead: leave out --token, --if-version and --sort-key")
	case f.damaged && (one || f.reason != ""):
		return usageOf(cmd, "--damaged removes a record that is no grant: leave out --token, --if-version and --reason")
	case f.ifRaw != "" && !f.damaged:
		return usageOf(cmd, "--if-raw is for --damaged: add --damaged, or leave out --if-raw")
	case f.damaged && f.yes && f.ifRaw == "":
		return usageOf(cmd, "--yes needs --if-raw, so that nothing else is removed than what was looked at")
	case cmd.Flags().Changed("for") && !f.dead:
		return usageOf(cmd, "--for is for --dead: add --dead, or leave out --for")
	case f.dead && !f.yes && !asks:
		return usageOf(cmd, "break asks at a terminal, and there is none: use --yes")
	case f.damaged && !f.yes && !asks:
		return usageOf(cmd, "break asks at a terminal, and there is none: use --if-raw and --yes")
	case f.yes && !f.dead && !f.damaged && !one:
		return usageOf(cmd, "--yes needs --token, or --if-version for a grant without one, so that no other grant is broken")
	}
	return nil
}

// breaker is how the one who breaks a grant is named in its record: as in
// LEASEHOLD_OWNER, else as the user of this machine.
func (a *app) breaker() leasehold.Config {
	owner, err := chooseOwner("", &a.flags.Settings)
	if err == nil && owner == "" {
		host, unnamed := os.Hostname()
		if unnamed != nil {
			host = "unknown"
		}
		owner = store.UserName() + "@" + host
	}
	return leasehold.Config{Owner: owner}
}

func (a *app) breakGrant(ctx context.Context, s *store.Store, locks *leasehold.Client, key leasehold.Key, f breakFlags) error {
	wanted := func(r leasehold.Record) bool {
		return (f.token == 0 || f.token == r.Token) && (f.ifVersion == "" || f.ifVersion == r.Version)
	}
	r, err := holders.Find(ctx, locks, key, wanted)
	if n, is := permits.In(s.Layout, err); is {
		r, err = permits.HolderOf(ctx, s, locks, key.Partition, n, wanted)
	}
	switch {
	case err != nil:
		return cause(ctx, err)
	case r.Released:
		return failure.Exit(failure.CodeNo, misuse.Errorf("%s is not held: nothing to break", wording.Key(key)))
	case !wanted(r):
		return &leasehold.ChangedError{Now: r}
	}
	if !f.yes && !a.canAsk() {
		return misuse.Errorf("%s is held by %s: break asks at a terminal, and there is none: to break this grant type leasehold break%s",
			wording.Key(r.Key), wording.Owner(r.Owner), f.wordsFor(r))
	}
	opts := f.options()
	if f.ifVersion != "" {
		opts = append(opts, leasehold.IfUnrenewed())
	}
	if !f.yes {
		o, err := a.confirmBreak(ctx, s, locks, r)
		if err != nil {
			return err
		}
		if o.State == holders.Dead {
			opts = append(opts, leasehold.IfUnrenewed())
		}
		r = o.Record
	}
	switch err := locks.Break(ctx, r, opts...); {
	case errors.Is(err, leasehold.ErrHolderUntold): // broken all the same
		a.say.Fail(err)
	case err != nil:
		return cause(ctx, err)
	}
	if a.flags.json {
		return json.NewEncoder(a.Stdout).Encode(say.Record{Table: s.Table, Record: r})
	}
	_, err = fmt.Fprintln(a.Stdout, brokeText(r))
	return err
}

// wordsFor are the arguments that break the grant in r and no other without asking.
func (f *breakFlags) wordsFor(r leasehold.Record) string {
	words := f.store
	if r.Token != 0 {
		words += " --token " + wording.Token(r.Token)
	} else {
		words += " --if-version " + wording.ShellWord(r.Version)
	}
	if f.reason != "" {
		words += " --reason " + wording.ShellWord(f.reason)
	}
	return words + " --yes " + wording.ShellKey(r.Key)
}

func (f *breakFlags) options() []leasehold.BreakOption {
	if f.reason == "" {
		return nil
	}
	return []leasehold.BreakOption{leasehold.WithReason(f.reason)}
}

// confirmBreak shows the record, observes it for its lease and asks.
func (a *app) confirmBreak(ctx context.Context, s *store.Store, locks *leasehold.Client, r leasehold.Record) (holders.Observation, error) {
	if err := a.Stderr.Record(say.Record{Table: s.Table, Record: r}, a.flags.json, a.Now()); err != nil {
		return holders.Observation{}, err
	}
	by, err := s.Observer(locks)
	if err != nil {
		return holders.Observation{}, err
	}
	o := a.say.Observe(ctx, by, []leasehold.Record{r}, "the holder")[0]
	switch {
	case o.Err != nil:
		return o, o.Err
	case o.Gone:
		return o, notFound(s, r.Key)
	case o.Record.Released, holders.GrantOf(o.Record) != holders.GrantOf(r):
		return o, &leasehold.ChangedError{Now: o.Record}
	case o.State == holders.Live && o.Shared:
		err = a.Stderr.Prose("The holder is alive: it has just renewed its session. After a break it may work on until it renews that next.")
	case o.State == holders.Live:
		err = a.Stderr.Prose("The holder is alive: it has just renewed. After a break it may work on for some seconds.")
	case s.Layout.Capabilities().Expiry == layout.WallClock:
		err = a.Stderr.Prose("The record has expired (%s): its holder is dead or stuck.", say.Lease(o.Record, a.Now()))
	default:
		err = a.Stderr.Prose("The holder has not renewed for one lease (%s): it is dead or stuck.", wording.Duration(o.Beat.Lease))
	}
	if err != nil {
		return o, err
	}
	err = a.confirm(ctx, fmt.Sprintf("Break the grant of %s? [y/N] ", wording.Key(r.Key)), "nothing was broken")
	if err == nil && o.State == holders.Dead {
		err = by.StillDead(ctx, o)
	}
	return o, err
}
