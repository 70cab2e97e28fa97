package inspect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/visible"
)

type getFlags struct {
	data, held bool
	done       string // label of the work
	check      arguments.Duration
	sortKey    string
}

// Get returns leasehold get.
func (c *Commands) Get() *cobra.Command {
	var f getFlags
	cmd := &cobra.Command{
		Use:               "get KEY [flags]",
		Short:             "Show one record",
		ValidArgsFunction: c.AnyKey,
		Args:              arguments.OneKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.check.Given && f.data:
				return failure.MisuseOf(cmd, "--check and --data: use one of them")
			case f.done != "" && (f.check.Given || f.data || f.held):
				return failure.MisuseOf(cmd, "--done answers by its exit code alone: leave out the other flag")
			case f.held && f.data:
				return failure.MisuseOf(cmd, "--held and --data: use one of them")
			}
			return c.OnTable(cmd, leasehold.Config{}, func(ctx context.Context, t *store.Table) error {
				key := t.Key(args[0], f.sortKey)
				switch {
				case f.data && !t.Layout.Capabilities().Data:
					return &leasehold.UnsupportedError{Layout: t.Layout.Name(), Feature: "data"}
				case f.held:
					return c.getHeld(ctx, t, key, f)
				case f.done != "":
					return answer(ctx, t, key, func(r leasehold.Record) (bool, error) { return r.Done != nil && names(f.done, *r.Done), nil })
				}
				return c.getRecord(ctx, t, key, f)
			})
		},
	}
	fl := cmd.Flags()
	arguments.Check(fl, &f.check)
	fl.BoolVar(&f.data, "data", false, "print only the data, byte for byte, with --json too; at a terminal, escaped")
	fl.StringVar(&f.done, "done", "", "print nothing: exit code 0 if `LABEL` was done last, 1 if it was not")
	fl.BoolVar(&f.held, "held", false, "print nothing: exit code 0 if KEY is held, 1 if it is not")
	arguments.SortKey(fl, &f.sortKey)
	return cmd
}

func (c *Commands) getRecord(ctx context.Context, t *store.Table, key leasehold.Key, f getFlags) error {
	r, err := holders.Get(ctx, t.Locks, key)
	if err != nil {
		return err
	}
	if f.data {
		return c.Stdout.Data(r.Data)
	}
	one := []leasehold.Record{r}
	by := t.Observer(f.check.Duration)
	if err := by.Reader.UnderSessions(ctx, one); err != nil {
		return err
	}
	o := holders.Observation{Record: one[0]}
	if f.check.Given && !o.Record.Released {
		o = c.Say.Observe(ctx, by, one, "the holder")[0]
	}
	switch {
	case o.Err != nil && o.State != holders.Unknown:
		return o.Err
	case o.Gone:
		return t.NotFound(key)
	}
	return errors.Join(c.Stdout.Record(say.Observed(t.Table, t.Region(), o), c.JSON, c.Now()), o.Err) // after an observation that ended early, get shows the result so far
}

// answer reports, by its exit code, whether key has a record r for which is(r) is true.
func answer(ctx context.Context, t *store.Table, key leasehold.Key, is func(leasehold.Record) (bool, error)) error {
	r, err := holders.Get(ctx, t.Locks, key)
	switch {
	case errors.Is(err, leasehold.ErrNotFound):
	case err != nil:
		return err
	default:
		if yes, err := is(r); yes || err != nil {
			return err
		}
	}
	return failure.Exit(failure.CodeNo, nil)
}

// names reports whether a label names work. It names the work of a period by the start of
// that period, either as get shows it or in the format of --json.
func names(label string, work leasehold.Done) bool {
	if work.Once != "" {
		return label == work.Once
	}
	at, err := time.Parse(time.RFC3339, label)
	return label == visible.Period(work.Period) || err == nil && at.Equal(work.Period)
}

// getHeld reports, by its exit code, whether a key is held. With --check, it reports
// whether a live holder holds the key. It prints only errors.
func (c *Commands) getHeld(ctx context.Context, t *store.Table, key leasehold.Key, f getFlags) error {
	return answer(ctx, t, key, func(r leasehold.Record) (bool, error) {
		if r.Released || !f.check.Given {
			return !r.Released, nil
		}
		what := "" // without a name, the observation prints nothing; it gets one only on a terminal, for a line that counts down
		if c.Say.Rewrites() {
			what = "the holder"
		}
		o := c.Say.Observe(ctx, t.Observer(f.check.Duration), []leasehold.Record{r}, what)[0]
		if o.Err == nil && o.State == holders.Unknown {
			o.Err = fmt.Errorf("whether the holder of %s is live is not known after %s: observe for longer, as with --check=5m", wording.Key(key), wording.Duration(f.check.Duration))
		}
		return o.State == holders.Live, o.Err
	})
}
