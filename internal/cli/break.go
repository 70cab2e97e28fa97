package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
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
	var f breakFlags
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
with KEY, or of all keys: it observes the holders, lists the dead ones, asks
once, and breaks those that have not renewed since.

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
			if err := f.check(cmd); err != nil {
				return err
			}
			asks := a.canAsk()
			switch {
			case f.dead && !f.yes && !asks:
				return usageOf(cmd, "break asks at a terminal, and there is none: use --yes")
			case f.damaged && !f.yes && !asks:
				return usageOf(cmd, "break asks at a terminal, and there is none: use --if-raw and --yes")
			case f.dead, f.damaged:
			case f.yes && f.token == 0 && f.ifVersion == "":
				return usageOf(cmd, "--yes needs --token, or --if-version for a grant without one, so that no other grant is broken")
			}
			f.store = storeFlags(cmd)
			s, err := a.open(cmd, "")
			if err != nil {
				return err
			}
			defer s.close()
			if f.reason != "" && !s.layout.Capabilities().KeepOnRelease {
				return usagef("--reason: layout %s keeps no record of a free key, so nobody could be told: leave out --reason", s.layout.Name())
			}
			if f.dead {
				var reads *meter
				s.db, reads = metered(s.db)
				return answer(s.withLocksOf(cmd.Context(), a.breaker(), func(ctx context.Context, locks *leasehold.Client) error {
					return a.breakDead(ctx, s, locks, reads, strings.Join(args, ""), f)
				}))
			}
			key := completeKey(s.layout, leasehold.Key{Partition: args[0], Sort: f.sortKey})
			return answer(s.withLocksOf(cmd.Context(), a.breaker(), func(ctx context.Context, locks *leasehold.Client) error {
				if f.damaged {
					return a.breakDamaged(ctx, s, locks, key, f)
				}
				return a.breakGrant(ctx, s, locks, key, f)
			}))
		},
	}
	fl := cmd.Flags()
	fl.Int64Var(&f.token, "token", 0, "break only the grant with this `TOKEN`; needed with --yes")
	fl.StringVar(&f.ifVersion, "if-version", "", "break only if the record still has this `VERSION`; for grants of other libraries, which have no token")
	fl.BoolVarP(&f.yes, "yes", "y", false, "do not ask; without --dead, do not observe either")
	fl.StringVar(&f.reason, "reason", "", "`TEXT` that says why, for the record and its holder")
	fl.BoolVar(&f.dead, "dead", false, "break the grants of all dead holders of keys that begin with KEY")
	fl.Var(durationFlag{d: &f.checkFor}, "for", "with --dead, observe at most `DURATION`; holders not known by then are left alone")
	fl.BoolVar(&f.damaged, "damaged", false, "remove a record that does not read as a lock")
	fl.StringVar(&f.ifRaw, "if-raw", "", "with --damaged, remove only what leasehold get --raw wrote to `FILE`; needed with --yes")
	fl.StringVar(&f.sortKey, "sort-key", "", "sort key `VALUE`, in a table that has one")
	return cmd
}

// maxReason is the most bytes of a reason that package leasehold accepts.
const maxReason = 1000

// check refuses flags that do not go together.
func (f *breakFlags) check(cmd *cobra.Command) error {
	one := f.token != 0 || f.ifVersion != ""
	switch {
	case cmd.Flags().Changed("reason") && strings.TrimSpace(f.reason) == "":
		return usageOf(cmd, "--reason is empty: say why, or leave it out")
	case len(f.reason) > maxReason || !utf8.ValidString(f.reason):
		return usageOf(cmd, "--reason must be text of at most %d bytes", maxReason)
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
	}
	return nil
}

// breaker is how the one who breaks a grant is named in its record: as in
// LEASEHOLD_OWNER, else as the user of this machine.
func (a *app) breaker() leasehold.Config {
	owner, err := chooseOwner("", a.Env)
	if err == nil && owner == "" {
		host, unnamed := os.Hostname()
		if unnamed != nil {
			host = "unknown"
		}
		owner = userName() + "@" + host
	}
	return leasehold.Config{Owner: owner}
}

func (a *app) breakGrant(ctx context.Context, s *store, locks *leasehold.Client, key leasehold.Key, f breakFlags) error {
	wanted := func(r leasehold.Record) bool {
		return (f.token == 0 || f.token == r.Token) && (f.ifVersion == "" || f.ifVersion == r.Version)
	}
	r, err := holder(ctx, locks, key, wanted)
	if n, is := permitsIn(s.layout, err); is {
		r, err = holderOfPermit(ctx, locks, key.Partition, n, wanted)
	}
	switch {
	case err != nil:
		return cause(ctx, err)
	case r.Released:
		return exit(codeNo, usagef("%s is not held: nothing to break", printable(key.String())))
	case !wanted(r):
		return &leasehold.ChangedError{Now: r}
	}
	if !f.yes && !a.canAsk() {
		return usagef("%s is held by %s: break asks at a terminal, and there is none: to break this grant type leasehold break%s",
			printable(r.Key.String()), shortOwner(r.Owner), f.wordsFor(r))
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
		if o.liveness == dead {
			opts = append(opts, leasehold.IfUnrenewed())
		}
		r = o.record
	}
	if err := locks.Break(ctx, r, opts...); err != nil {
		return cause(ctx, err)
	}
	if a.flags.json {
		return json.NewEncoder(a.Stdout).Encode(recordJSON{Table: s.table, Record: r})
	}
	_, err = fmt.Fprintln(a.Stdout, brokeText(r))
	return err
}

// wordsFor are the arguments that break the grant in r and no other without asking.
func (f *breakFlags) wordsFor(r leasehold.Record) string {
	words := f.store
	if r.Token != 0 {
		words += " --token " + tokenText(r)
	} else {
		words += " --if-version " + shellWord(r.Version)
	}
	if f.reason != "" {
		words += " --reason " + shellWord(f.reason)
	}
	return words + " --yes " + shellWords(r.Key)
}

func (f *breakFlags) options() []leasehold.BreakOption {
	if f.reason == "" {
		return nil
	}
	return []leasehold.BreakOption{leasehold.WithReason(f.reason)}
}

// confirmBreak shows the record, observes it for its lease and asks.
func (a *app) confirmBreak(ctx context.Context, s *store, locks *leasehold.Client, r leasehold.Record) (observation, error) {
	if err := a.showRecord(a.Stderr, s, row{record: r}); err != nil {
		return observation{}, err
	}
	by, err := newObserver(s, locks)
	if err != nil {
		return observation{}, err
	}
	o := a.observeWithProgress(ctx, by, []leasehold.Record{r}, "the holder")[0]
	switch {
	case o.err != nil:
		return o, o.err
	case o.gone:
		return o, notFound(s, r.Key)
	case o.record.Released, grantOf(o.record) != grantOf(r):
		return o, &leasehold.ChangedError{Now: o.record}
	case o.liveness == live && o.heartbeat.shared:
		fmt.Fprintln(a.Stderr, "The holder is alive: it has just renewed its session. After a break it may work on for up to twenty minutes.")
	case o.liveness == live:
		fmt.Fprintln(a.Stderr, "The holder is alive: it has just renewed. After a break it may work on for some seconds.")
	case by.expiry == layout.WallClock:
		fmt.Fprintf(a.Stderr, "The record has expired (%s): its holder is dead or stuck.\n", leaseText(o.record, a.Now()))
	default:
		fmt.Fprintf(a.Stderr, "The holder has not renewed for one lease (%s): it is dead or stuck.\n", shortDuration(o.heartbeat.lease))
	}
	err = a.confirm(ctx, fmt.Sprintf("Break the grant of %s? [y/N] ", printable(r.Key.String())), "nothing was broken")
	if err == nil && o.liveness == dead {
		err = by.stillDead(ctx, o)
	}
	return o, err
}
