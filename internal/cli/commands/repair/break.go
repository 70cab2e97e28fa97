package repair

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/invocation"
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

// Break is leasehold break.
func Break(in *invocation.Invocation) *cobra.Command {
	c := &command{in}
	f := breakFlags{checkFor: arguments.DefaultCheckFor}
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
		ValidArgsFunction: c.HeldKey,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.dead {
				return arguments.OnePrefix(cmd, args)
			}
			return arguments.OneKey(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd, c.CanAsk()); err != nil {
				return err
			}
			f.store = arguments.StoreFlags(cmd)
			return c.OnTable(cmd, arguments.Breaker(&c.Settings), func(ctx context.Context, t *store.Table) error {
				if f.reason != "" && !t.Layout.Capabilities().KeepOnRelease {
					return misuse.Errorf("--reason: layout %s keeps no record of a free key, so nobody could be told: leave out --reason", t.Layout.Name())
				}
				if f.dead {
					return c.breakDead(ctx, t, strings.Join(args, ""), f)
				}
				key := store.KeyOf(t.Proto, args[0], f.sortKey)
				if f.damaged {
					return c.breakDamaged(ctx, t, key, f)
				}
				return c.breakGrant(ctx, t, key, f)
			})
		},
	}
	fl := cmd.Flags()
	fl.Int64Var(&f.token, "token", 0, "break only the grant with this `TOKEN`; needed with --yes")
	fl.StringVar(&f.ifVersion, "if-version", "", "break only if the record still has this `VERSION`; for grants of other libraries, which have no token")
	fl.BoolVarP(&f.yes, "yes", "y", false, "do not ask; without --dead, do not observe either")
	fl.StringVar(&f.reason, "reason", "", "`TEXT` that says why, for the record and its holder")
	fl.BoolVar(&f.dead, "dead", false, "break the grants of all dead holders of keys that begin with KEY")
	fl.Var(arguments.Duration{D: &f.checkFor}, "for", "with --dead, observe at most `DURATION`; holders not known by then are left alone; 0: until all are known")
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
		return misuse.Of(cmd, "--reason is empty: say why, or leave it out")
	case protocol.ReasonProblem(f.reason) != "":
		return misuse.Of(cmd, "--reason: %s", protocol.ReasonProblem(f.reason))
	case f.dead && f.damaged:
		return misuse.Of(cmd, "--dead and --damaged: use one of them")
	case f.dead && (one || f.sortKey != ""):
		return misuse.Of(cmd, "--dead breaks all that are dead: leave out --token, --if-version and --sort-key")
	case f.damaged && (one || f.reason != ""):
		return misuse.Of(cmd, "--damaged removes a record that is no grant: leave out --token, --if-version and --reason")
	case f.ifRaw != "" && !f.damaged:
		return misuse.Of(cmd, "--if-raw is for --damaged: add --damaged, or leave out --if-raw")
	case f.damaged && f.yes && f.ifRaw == "":
		return misuse.Of(cmd, "--yes needs --if-raw, so that nothing else is removed than what was looked at")
	case cmd.Flags().Changed("for") && !f.dead:
		return misuse.Of(cmd, "--for is for --dead: add --dead, or leave out --for")
	case f.dead && !f.yes && !asks:
		return misuse.Of(cmd, "break asks at a terminal, and there is none: use --yes")
	case f.damaged && !f.yes && !asks:
		return misuse.Of(cmd, "break asks at a terminal, and there is none: use --if-raw and --yes")
	case f.yes && !f.dead && !f.damaged && !one:
		return misuse.Of(cmd, "--yes needs --token, or --if-version for a grant without one, so that no other grant is broken")
	}
	return nil
}

func (c *command) breakGrant(ctx context.Context, t *store.Table, key leasehold.Key, f breakFlags) error {
	wanted := func(r leasehold.Record) bool {
		return (f.token == 0 || f.token == r.Token) && (f.ifVersion == "" || f.ifVersion == r.Version)
	}
	r, err := holders.Find(ctx, t.Locks, key, wanted)
	if n, is := permits.In(t.Proto, err); is {
		r, err = permits.HolderOf(ctx, t, key.Partition, n, wanted)
	}
	switch {
	case err != nil:
		return err
	case r.Released:
		return failure.Exit(failure.CodeNo, misuse.Errorf("%s is not held: nothing to break", wording.Key(key)))
	case !wanted(r):
		return &leasehold.ChangedError{Now: r}
	}
	if !f.yes && !c.CanAsk() {
		return misuse.Errorf("%s is held by %s: break asks at a terminal, and there is none: to break this grant type leasehold break%s",
			wording.Key(r.Key), wording.Owner(r.Owner), f.wordsFor(r))
	}
	opts := f.options()
	if f.ifVersion != "" {
		opts = append(opts, leasehold.IfUnrenewed())
	}
	if !f.yes {
		o, err := c.confirmBreak(ctx, t, r)
		if err != nil {
			return err
		}
		if o.State == holders.Dead {
			opts = append(opts, leasehold.IfUnrenewed())
		}
		r = o.Record
	}
	switch err := t.Locks.Break(ctx, r, opts...); {
	case errors.Is(err, leasehold.ErrHolderUntold): // broken all the same
		c.Say.Fail(err)
	case err != nil:
		return err
	}
	return c.Print(say.Record{Table: t.Table, Record: r}, "%s\n", brokeText(r))
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
func (c *command) confirmBreak(ctx context.Context, t *store.Table, r leasehold.Record) (o holders.Observation, err error) {
	if err := c.Stderr.Record(say.Record{Table: t.Table, Record: r}, c.JSON, c.Now()); err != nil {
		return o, err
	}
	by := t.Observer(0)
	o = c.Say.Observe(ctx, by, []leasehold.Record{r}, "the holder")[0]
	switch {
	case o.Err != nil:
		return o, o.Err
	case o.Gone:
		return o, t.NotFound(r.Key)
	case o.Record.Released, holders.GrantOf(o.Record) != holders.GrantOf(r):
		return o, &leasehold.ChangedError{Now: o.Record}
	case o.State == holders.Live && o.Shared:
		err = c.Stderr.Prose("The holder is alive: it has just renewed its session. After a break it may work on until it renews that next.")
	case o.State == holders.Live:
		err = c.Stderr.Prose("The holder is alive: it has just renewed. After a break it may work on for some seconds.")
	case t.Layout.Capabilities().Expiry == layout.WallClock:
		err = c.Stderr.Prose("The record has expired (%s): its holder is dead or stuck.", say.Lease(o.Record, c.Now()))
	default:
		err = c.Stderr.Prose("The holder has not renewed for one lease (%s): it is dead or stuck.", wording.Duration(o.Beat.Lease))
	}
	if err != nil {
		return o, err
	}
	err = c.Confirm(ctx, fmt.Sprintf("Break the grant of %s? [y/N] ", wording.Key(r.Key)), "nothing was broken")
	if err == nil && o.State == holders.Dead {
		err = by.StillDead(ctx, o)
	}
	return o, err
}
