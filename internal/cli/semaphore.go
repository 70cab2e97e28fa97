package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
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
	before, err := permits.Stored(ctx, s, locks, key)
	if err != nil {
		return cause(ctx, err)
	}
	counted, err := semaphore.New(locks, key, n)
	if err != nil {
		return err
	}
	if err := counted.Resize(ctx, n); err != nil {
		return cause(ctx, err)
	}
	now, err := permits.Read(ctx, s, locks, key, n)
	if err != nil {
		return cause(ctx, err)
	}
	now.Before = before
	if a.flags.json {
		return json.NewEncoder(a.Stdout).Encode(now)
	}
	said := fmt.Sprintf("%s: %s, as before; ", wording.Name(key), permits.Count(n))
	if n != before {
		said = fmt.Sprintf("%s: %s, before %d; ", wording.Name(key), permits.Count(n), before)
	}
	said += wording.Count(now.Taken, "is taken", "are taken")
	keys := counted.Keys()
	kept := slices.DeleteFunc(now.Holders, func(r say.Record) bool { return slices.Contains(keys, r.Record.Key) }) // of permits that are gone
	if len(kept) > 0 {
		said += fmt.Sprintf(", %d of them above %d, kept until their holders end: till then %d may hold it at a time", len(kept), n, n+len(kept))
	}
	if _, err := fmt.Fprintln(a.Stdout, said); err != nil {
		return err
	}
	return a.newListing(s, locks).Write(a.Stdout, kept, a.Now())
}

// showSemaphore writes how many permits there are, and their holders as ls lists
// them.
func (a *app) showSemaphore(ctx context.Context, s *store.Store, locks *leasehold.Client, key string, n int, check bool, checkFor time.Duration) error {
	sem, err := permits.Read(ctx, s, locks, key, n)
	if err != nil {
		return cause(ctx, err)
	}
	if check && sem.Taken > 0 {
		if err := a.checkSemaphore(ctx, s, locks, &sem, checkFor); err != nil {
			return err
		}
	}
	if a.flags.json {
		return json.NewEncoder(a.Stdout).Encode(sem)
	}
	out := a.newListing(s, locks)
	out.Checked = check
	fields := [][2]string{{"key", visible.Name(key)}, {"kind", sem.Kind}, {"permits", strconv.Itoa(n)}, {"taken", strconv.Itoa(sem.Taken)}}
	if err := a.Stdout.Fields(fields, ""); err != nil {
		return err
	}
	return out.Write(a.Stdout, sem.Holders, a.Now())
}

// checkSemaphore observes the holders, and leaves out who has ended meanwhile.
func (a *app) checkSemaphore(ctx context.Context, s *store.Store, locks *leasehold.Client, sem *permits.Semaphore, checkFor time.Duration) error {
	by, err := s.Observer(locks)
	if err != nil {
		return err
	}
	by.Limit = checkFor
	held := make([]leasehold.Record, sem.Taken)
	for i, r := range sem.Holders {
		held[i] = r.Record
	}
	sem.Holders = sem.Holders[:0]
	err = a.checkHolders(ctx, by, false, held, func(o holders.Observation) error {
		sem.Holders = append(sem.Holders, say.Record{Table: s.Table, Record: o.Record, Holder: o.State})
		return nil
	})
	sem.Taken = len(sem.Holders)
	slices.SortFunc(sem.Holders, func(x, y say.Record) int { return compareKeys(x.Record.Key, y.Record.Key) })
	return err
}
