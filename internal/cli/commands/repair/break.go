// Package repair has the commands with which an operator repairs locks: break and forget.
//
//	break.go   the command "break", which also removes damaged records
//	forget.go  the command "forget"
//
// Package holders, which these commands use, decides whether a holder is dead.
package repair

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/invocation"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/internal/visible"
	"github.com/leasehold-go/leasehold/layout"
)

// Commands builds the cobra commands of this package. They share one Invocation, which is
// one run of leasehold.
type Commands struct{ *invocation.Invocation }

type breakFlags struct {
	token   string
	yes     bool
	sortKey string
	reason  arguments.Text
	store   string // flags that choose the store, quoted for a shell; messages suggest commands with them
}

// Break returns the command "leasehold break".
func (c *Commands) Break() *cobra.Command {
	var f breakFlags
	cmd := &cobra.Command{
		Use:               "break KEY [flags]",
		Short:             "Break one grant that is stuck",
		ValidArgsFunction: c.HeldKey,
		Args:              arguments.OneKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			f.store = arguments.StoreFlags(cmd)
			return c.OnTable(cmd, c.Settings.Breaker(), func(ctx context.Context, t *store.Table) error {
				if f.reason.Value != "" && !t.Layout.Capabilities().KeepOnRelease {
					return failure.Misusef("--reason: layout %s keeps no record of a free key, so the reason could not be kept: leave out --reason", t.Layout.Name())
				}
				return c.breakGrant(ctx, t, t.Key(args[0], f.sortKey), f)
			})
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.token, "token", "", "break only the grant with this `TOKEN`; for another library's grant without a token, its version; needed with --yes")
	fl.BoolVarP(&f.yes, "yes", "y", false, "do not ask, and do not observe")
	fl.Var(&f.reason, "reason", "give `TEXT` as the reason, to the record and the holder")
	arguments.SortKey(fl, &f.sortKey)
	return cmd
}

// check returns an error if the flags of break contradict each other.
func (f *breakFlags) check(cmd *cobra.Command) error {
	switch {
	case f.reason.Given && strings.TrimSpace(f.reason.Value) == "":
		return failure.MisuseOf(cmd, "--reason is empty: say why, or leave it out")
	case protocol.ReasonProblem(f.reason.Value) != "":
		return failure.MisuseOf(cmd, "--reason: %s", protocol.ReasonProblem(f.reason.Value))
	case f.yes && f.token == "":
		return failure.MisuseOf(cmd, "--yes needs --token, so that no other grant is broken")
	}
	return nil
}

// grantOf returns the value of --token for the grant in r: the fencing token, or the version if a
// library without tokens wrote the record.
func grantOf(r leasehold.Record) string { return cmp.Or(wording.Token(r.Token), r.Version) }

func (c *Commands) breakGrant(ctx context.Context, t *store.Table, key leasehold.Key, f breakFlags) error {
	r, err := holders.Get(ctx, t.Locks, key)
	switch {
	case holders.IsDamaged(err) && f.token == "" && f.reason.Value == "":
		return c.breakDamaged(ctx, t, key)
	case err != nil:
		return err
	case r.Released:
		return failure.Like(leasehold.ErrChanged, fmt.Sprintf("%s is not held: nothing to break", key.String()))
	case f.token != "" && f.token != grantOf(r):
		return &leasehold.ChangedError{Now: r}
	}
	by, one := t.Observer(0), []leasehold.Record{r}
	_ = by.Reader.UnderSessions(ctx, one) // for the lease that is shown: if this fails, it is that of the record
	r = one[0]
	if !f.yes && !c.CanAsk() {
		return failure.Misusef("%s is held by %s: break asks at a terminal, and there is none: to break this grant type leasehold break%s",
			r.Key.String(), wording.Owner(r.Owner), f.wordsFor(r))
	}
	how := leasehold.BreakOptions{Reason: f.reason.Value, IfUnrenewed: f.token != "" && r.Token == 0}
	if !f.yes {
		o, err := c.confirmBreak(ctx, t, r)
		if err != nil {
			return err
		}
		how.IfUnrenewed = how.IfUnrenewed || o.State == holders.Dead
		r = o.Record
	}
	switch err := t.Locks.Break(ctx, r, how); {
	case errors.Is(err, leasehold.ErrHolderUntold): // the grant is broken, but its holder could not be notified
		c.Say.Fail(err)
	case err != nil:
		return err
	}
	return c.Print(say.Record{Table: t.Table, Region: t.Region(), Record: r}, "broke the grant of %s\n", say.Grant(r))
}

// wordsFor returns the arguments of a "leasehold break" command that a message suggests. The
// command breaks exactly the grant in r, without asking.
func (f *breakFlags) wordsFor(r leasehold.Record) string {
	// No lock library writes a version longer than visible.Longest. If the record contains a
	// longer one, the suggested command contains only a part of it, and therefore breaks nothing.
	words := f.store + " --token " + wording.ShellWord(visible.Middle(grantOf(r), visible.Longest))
	if f.reason.Value != "" {
		words += " --reason " + wording.ShellWord(f.reason.Value)
	}
	return words + " --yes " + wording.ShellKey(r.Key)
}

// confirmBreak shows the record r, and observes its holder for the length of one lease, to
// see whether the holder renews. It then asks the user to confirm the break. It returns an
// error if the user refuses.
func (c *Commands) confirmBreak(ctx context.Context, t *store.Table, r leasehold.Record) (o holders.Observation, err error) {
	if err := c.Stderr.Record(say.Record{Table: t.Table, Region: t.Region(), Record: r}, c.JSON, c.Now()); err != nil {
		return o, err
	}
	by := t.Observer(0)
	o = c.Say.Observe(ctx, by, r, "the holder")
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
	err = c.Confirm(ctx, fmt.Sprintf("Break the grant of %s? [y/N] ", r.Key.String()), "nothing was broken")
	if err == nil && o.State == holders.Dead {
		err = by.StillDead(ctx, o)
	}
	return o, err
}

// breakDamaged shows a damaged record, and removes it if the user confirms. The removal fails
// if the record has changed since it was shown.
func (c *Commands) breakDamaged(ctx context.Context, t *store.Table, key leasehold.Key) error {
	item, err := t.Item(ctx, key)
	if err != nil {
		return err
	}
	raw, err := say.Item(item)
	if err != nil {
		return err
	}
	found := holders.Read(t.Proto, item)
	switch found.Kind {
	case holders.KindDamaged:
	case holders.KindSession:
		return failure.Exit(failure.CodeNo, fmt.Errorf("%s is the row of a shared lease rather than a key: nothing was removed", key.String()))
	default:
		return fmt.Errorf("%w meanwhile: %s: look again", leasehold.ErrChanged, key.String())
	}
	if !c.CanAsk() {
		return failure.Misusef("the record of %s is damaged: %s %s: break shows what it removes, and asks at a terminal, and there is none", key.String(), visible.Word(found.Damage.Attribute), found.Damage.Problem)
	}
	shown, _ := json.MarshalIndent(json.RawMessage(raw), "", "  ") // cannot fail, because raw is valid JSON
	fmt.Fprintln(c.Stderr, string(shown))
	_ = c.Stderr.Prose("It is not a valid lock record: %s %s.", visible.Word(found.Damage.Attribute), found.Damage.Problem)
	if r, ok := records.LockBut(t.Proto, item, found.Damage.Attribute); ok && r.Released {
		_ = c.Stderr.Prose("Without that attribute it is a free lock of layout %s: rename the attribute instead.", t.Layout.Name())
	} else if ok {
		_ = c.Stderr.Prose("Without that attribute it is a held lock: rename the attribute instead.")
	}
	_ = c.Stderr.Prose("Its holder, if any, is not notified, and may work on until its next renewal. Tokens start again from the clock.")
	if err := c.Confirm(ctx, fmt.Sprintf("Remove the record of %s, if it is still as shown? [y/N] ", key.String()), "nothing was removed"); err != nil {
		return err
	}
	if err := removeExactly(ctx, t, key, item); err != nil {
		return err
	}
	return c.Print(json.RawMessage(raw), "removed the record of %s\n", key.String())
}
