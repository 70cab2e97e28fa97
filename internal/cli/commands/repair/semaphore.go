package repair

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/invocation"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/permits"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/visible"
	"github.com/leasehold-go/leasehold/semaphore"
)

// Semaphore is leasehold semaphore.
func Semaphore(in *invocation.Invocation) *cobra.Command {
	c := &command{in}
	cmd := &cobra.Command{
		Use:   "semaphore COMMAND [flags]",
		Short: "Change how many may hold a key",
		Long: `Change the number of permits of a semaphore: a key of run -p.
leasehold get KEY shows how many there are, and who holds them.`,
		Example: `  leasehold semaphore resize gpu 4`,
		Args:    cobra.ArbitraryArgs,
		RunE:    arguments.Subcommand,
	}
	cmd.AddCommand(c.newSemaphoreResize())
	return cmd
}

func (c *command) newSemaphoreResize() *cobra.Command {
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
				return misuse.Of(cmd, "N is missing")
			}
			if err := arguments.OneKey(cmd, args[:min(1, len(args))]); err != nil {
				return err
			}
			if len(args) > 2 {
				return misuse.Of(cmd, "only KEY and N are allowed: remove %s", visible.Name(args[2]))
			}
			n, err = strconv.Atoi(args[1])
			switch {
			case err != nil:
				return misuse.Of(cmd, "%q is not a number of permits: use 1 to %d", args[1], protocol.MostPermits)
			case n < 1 || n > protocol.MostPermits:
				return misuse.Of(cmd, "N is %d: use 1 to %d", n, protocol.MostPermits)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.OnTable(cmd, leasehold.Config{}, func(ctx context.Context, t *store.Table) error {
				return c.resizeSemaphore(ctx, t, args[0], n)
			})
		},
	}
}

func (c *command) resizeSemaphore(ctx context.Context, t *store.Table, key string, n int) error {
	before, err := permits.Stored(ctx, t, key)
	if err != nil {
		return err
	}
	counted, err := semaphore.New(t.Locks, key, n)
	if err != nil {
		return err
	}
	if err := counted.Resize(ctx, n); err != nil {
		return err
	}
	now, err := permits.Read(ctx, t, key, n)
	if err != nil {
		return err
	}
	now.Before = before
	if c.JSON {
		return json.NewEncoder(c.Stdout).Encode(now)
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
	if _, err := fmt.Fprintln(c.Stdout, said); err != nil {
		return err
	}
	return c.Listing(t).Write(c.Stdout, kept, c.Now())
}
