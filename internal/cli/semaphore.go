package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
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
	"github.com/leasehold-go/leasehold/internal/visible"
	"github.com/leasehold-go/leasehold/semaphore"
)

func (a *app) newSemaphore() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "semaphore COMMAND [flags]",
		Short: "Change how many may hold a key",
		Long: `Change the number of permits of a semaphore: a key of run -p.
leasehold get KEY shows how many there are, and who holds them.`,
		Example: `  leasehold semaphore resize gpu 4`,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return usageOf(cmd, "unknown command %s", visible.Name(args[0]))
		},
	}
	cmd.AddCommand(a.newSemaphoreResize())
	return cmd
}

func (a *app) newSemaphoreResize() *cobra.Command {
	var n int
	return &cobra.Command{
		Use:   "resize KEY N [flags]",
		Short: "Let N hold KEY at a time from now on",
		Long: `Let N hold KEY at a time from now on.

Every process follows: waiters within ten seconds, and each later run -p must
say the new N. Nobody is stopped: who holds one of the permits that are gone
keeps it until it ends, and till then more than N may hold KEY. They are listed;
leasehold break ends one. Exit code 1: there is no semaphore under KEY yet; the
first leasehold run -p N KEY makes it.`,
		Example: `  leasehold semaphore resize gpu 4
  leasehold get gpu      # how many there are, and who holds them`,
		ValidArgsFunction: cobra.NoFileCompletions,
		Args: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) == 1 && args[0] != "" {
				return usageOf(cmd, "N is missing")
			}
			if err := oneKey(cmd, args[:min(1, len(args))]); err != nil {
				return err
			}
			if len(args) > 2 {
				return usageOf(cmd, "only KEY and N are allowed: remove %s", visible.Name(args[2]))
			}
			n, err = strconv.Atoi(args[1])
			switch {
			case err != nil:
				return usageOf(cmd, "%q is not a number of permits: use 1 to %d", args[1], protocol.MostPermits)
			case n < 1 || n > protocol.MostPermits:
				return usageOf(cmd, "N is %d: use 1 to %d", n, protocol.MostPermits)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.onTable(cmd, leasehold.Config{}, func(ctx context.Context, s *store.Store, locks *leasehold.Client) error {
				return a.resizeSemaphore(ctx, s, locks, args[0], n)
			})
		},
	}
}

func (a *app) resizeSemaphore(ctx context.Context, s *store.Store, locks *leasehold.Client, key string, n int) error {
	before, err := storedPermits(ctx, s, locks, key)
	if err != nil {
		return err
	}
	counted, err := semaphore.New(locks, key, n)
	if err != nil {
		return err
	}
	if err := counted.Resize(ctx, n); err != nil {
		return cause(ctx, err)
	}
	now, err := readSemaphore(ctx, locks, key, n)
	if err != nil {
		return cause(ctx, err)
	}
	now.before = before
	if a.flags.json {
		return now.encode(a.Stdout, s.Table)
	}
	said := fmt.Sprintf("%s: %s, as before; ", wording.Name(key), permits.Count(n))
	if n != before {
		said = fmt.Sprintf("%s: %s, before %d; ", wording.Name(key), permits.Count(n), before)
	}
	said += wording.Count(len(now.holders), "is taken", "are taken")
	kept := now.without(counted.Keys())
	if len(kept) > 0 {
		said += fmt.Sprintf(", %d of them above %d, kept until their holders end: till then %d may hold it at a time", len(kept), n, n+len(kept))
	}
	if _, err := fmt.Fprintln(a.Stdout, said); err != nil {
		return err
	}
	return a.newListing(s, locks).Write(a.Stdout, kept, a.Now())
}

// without returns the holders of permits that are not among keys: those that a
// resize has removed.
func (sem semaphoreShown) without(keys []leasehold.Key) []say.Record {
	return slices.DeleteFunc(slices.Clone(sem.holders), func(r say.Record) bool { return slices.Contains(keys, r.Record.Key) })
}

// storedPermits returns how many permits are stored for a key.
func storedPermits(ctx context.Context, s *store.Store, locks *leasehold.Client, key string) (int, error) {
	rows := permits.Rows(s.Layout)
	if rows == nil {
		return 0, misuse.Errorf("layout %s stores no number of permits: give every process the same -p", s.Layout.Name())
	}
	at := leasehold.Key(rows.Key(key))
	r, err := locks.Get(ctx, at.Partition, withSortKey(at)...)
	n, is := permits.In(s.Layout, err)
	switch {
	case is:
		return n, nil
	case err == nil:
		return 0, misuse.Errorf("%s is a lock, not a semaphore, and it is %s: name a key that leasehold run -p uses, or once it is free start over with leasehold forget %s",
			wording.Name(key), permits.HeldNow(r), wording.ShellKey(at))
	case errors.Is(err, leasehold.ErrNotFound):
		return 0, &noSemaphoreError{key, s.Called()}
	}
	return 0, cause(ctx, err)
}

// semaphoreShown is a semaphore as it is shown.
type semaphoreShown struct {
	key     string
	permits int
	before  int // 0: not changed
	holders []say.Record
}

// readSemaphore reads who holds permits, dead holders included.
func readSemaphore(ctx context.Context, locks *leasehold.Client, key string, n int) (semaphoreShown, error) {
	counted, err := semaphore.New(locks, key, n)
	if err != nil {
		return semaphoreShown{}, err
	}
	held, err := counted.Holders(ctx)
	sem := semaphoreShown{key: key, permits: n}
	for _, r := range held {
		sem.holders = append(sem.holders, say.Record{Record: r})
	}
	return sem, err
}

func (sem semaphoreShown) encode(w io.Writer, table string) error {
	out := struct {
		Table   string       `json:"table"`
		Key     string       `json:"key"`
		Kind    string       `json:"kind"`
		Permits int          `json:"permits"`
		Before  int          `json:"before,omitempty"`
		Taken   int          `json:"taken"`
		Holders []say.Record `json:"holders"`
	}{table, sem.key, protocol.KindSemaphore, sem.permits, sem.before, len(sem.holders), []say.Record{}}
	for _, r := range sem.holders {
		out.Holders = append(out.Holders, say.Record{Table: table, Record: r.Record, Holder: r.Holder})
	}
	return json.NewEncoder(w).Encode(out)
}

// showSemaphore writes how many permits there are, and their holders as ls lists
// them.
func (a *app) showSemaphore(ctx context.Context, s *store.Store, locks *leasehold.Client, key string, n int, check bool, checkFor time.Duration) error {
	sem, err := readSemaphore(ctx, locks, key, n)
	if err != nil {
		return cause(ctx, err)
	}
	if check && len(sem.holders) > 0 {
		if sem.holders, err = a.checkPermitHolders(ctx, s, locks, sem.holders, checkFor); err != nil {
			return err
		}
	}
	if a.flags.json {
		return sem.encode(a.Stdout, s.Table)
	}
	out := a.newListing(s, locks)
	out.Checked = check
	fields := [][2]string{{"key", visible.Name(key)}, {"kind", protocol.KindSemaphore}, {"permits", strconv.Itoa(n)}, {"taken", strconv.Itoa(len(sem.holders))}}
	if err := a.Stdout.Fields(fields, ""); err != nil {
		return err
	}
	return out.Write(a.Stdout, sem.holders, a.Now())
}

// checkPermitHolders observes holders, and leaves out who has ended meanwhile.
func (a *app) checkPermitHolders(ctx context.Context, s *store.Store, locks *leasehold.Client, held []say.Record, checkFor time.Duration) ([]say.Record, error) {
	by, err := s.Observer(locks)
	if err != nil {
		return nil, err
	}
	by.Limit = checkFor
	records := make([]leasehold.Record, len(held))
	for i, r := range held {
		records[i] = r.Record
	}
	var found []say.Record
	err = a.checkHolders(ctx, by, false, records, func(o holders.Observation) error {
		found = append(found, say.Record{Record: o.Record, Holder: o.State})
		return nil
	})
	slices.SortFunc(found, func(x, y say.Record) int { return compareKeys(x.Record.Key, y.Record.Key) })
	return found, err
}

// holderOfPermit returns the one wanted holder of a permit of a semaphore.
func holderOfPermit(ctx context.Context, locks *leasehold.Client, key string, n int, wanted func(leasehold.Record) bool) (leasehold.Record, error) {
	sem, err := readSemaphore(ctx, locks, key, n)
	if err != nil {
		return leasehold.Record{}, err
	}
	var found []leasehold.Record
	for _, r := range sem.holders {
		if wanted(r.Record) {
			found = append(found, r.Record)
		}
	}
	what := fmt.Sprintf("%s is a semaphore with %s", wording.Name(key), permits.Count(n))
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(sem.holders) == 0:
		return leasehold.Record{}, failure.Exit(failure.CodeNo, misuse.Errorf("%s, and nobody holds one: nothing to break", what))
	case len(found) == 0:
		return leasehold.Record{}, failure.Exit(failure.CodeNo, misuse.Errorf("%s, and none of its %s has that grant: %s", what, wording.Count(len(sem.holders), "holder", "holders"), sem.named()))
	}
	return leasehold.Record{}, misuse.Errorf("%s, held by %d: name one by its --token or its own key: %s", what, len(sem.holders), sem.named())
}

// named names the holders in one line.
func (sem semaphoreShown) named() string {
	var names []string
	for _, r := range sem.holders {
		name := wording.Key(r.Record.Key) + " (" + wording.Owner(r.Record.Owner)
		if r.Record.Token != 0 {
			name += fmt.Sprintf(", token %d", r.Record.Token)
		}
		names = append(names, name+")")
	}
	text := wording.FirstNames(names)
	if len(names) > wording.MostNamed {
		text = fmt.Sprintf("%s: see leasehold get %s", text, wording.ShellWord(sem.key))
	}
	return text
}

// noSemaphoreError says that a key has no permits yet.
type noSemaphoreError struct{ key, where string }

func (e *noSemaphoreError) Error() string {
	return fmt.Sprintf("%s is not a semaphore in %s yet: the first leasehold run -p N makes it one", wording.Name(e.key), e.where)
}

// Is makes it match leasehold.ErrNotFound.
func (e *noSemaphoreError) Is(target error) bool { return target == leasehold.ErrNotFound }
