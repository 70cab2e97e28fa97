package setup

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/bench"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/invocation"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/store"
)

// Bench is leasehold bench.
func Bench(in *invocation.Invocation) *cobra.Command {
	c := &command{in}
	p, yes := bench.Plan{Duration: 10 * time.Second}, false
	cmd := &cobra.Command{
		Use:   "bench [flags]",
		Short: "Measure latency, hand-over and cost of your table",
		Long: `Measure the table: acquiring and releasing, renewing, handing over among
contending clients, taking over from a dead holder, and what each of them costs.
Says first what it will cost at most, and asks. Writes only keys that begin with
` + bench.Prefix + `, and deletes them, also on Ctrl-C.

  acquire, release  one client, a free key
  renewal           one client
  hand-over         N clients contend for one key: from the start of a release
                    until another client is granted it
  takeover          from the last sign of a holder that died until a waiting
                    client is granted its key, with the shortest lease

Columns: operation, count, p50, p95, p99 in milliseconds; requests, write units
and read units of one operation, with those of the clients that wait meanwhile
(a hand-over is a release and a grant); dollars for a million operations.

The bill is at the ` + bench.PricedAt + `, storage
apart; --write-price and --read-price are for other Regions. A table with
provisioned capacity shares it with its other users.`,
		Example: `  leasehold bench --table locks
  leasehold bench -d 60 -c 50 --write-price 0.75 --read-price 0.15
  leasehold bench --file /tmp/locks.db -y --json`,
		Args: arguments.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case p.Clients < 2 || p.Clients > 1000:
				return misuse.Of(cmd, "-c %d: use 2 to 1000 clients", p.Clients)
			case p.WritePrice < 0 || p.ReadPrice < 0:
				return misuse.Of(cmd, "a price cannot be negative")
			case !yes && !c.CanAsk():
				return misuse.Of(cmd, "bench asks at a terminal, and there is none: use --yes")
			}
			return c.bench(cmd, p, yes)
		},
	}
	fl := cmd.Flags()
	fl.VarP(arguments.Duration{D: &p.Duration, Min: 100 * time.Millisecond}, "duration", "d", "`DURATION` of each part; a takeover takes a lease, however short it is")
	fl.IntVarP(&p.Clients, "clients", "c", 16, "`N` clients contend for one key")
	fl.BoolVarP(&yes, "yes", "y", false, "do not ask")
	fl.Float64Var(&p.WritePrice, "write-price", bench.WritePrice, "`DOLLARS` for a million write units")
	fl.Float64Var(&p.ReadPrice, "read-price", bench.ReadPrice, "`DOLLARS` for a million read units")
	return cmd
}

func (c *command) bench(cmd *cobra.Command, p bench.Plan, yes bool) error {
	return c.OnStore(cmd, store.Opening{Make: true}, func(ctx context.Context, s *store.Store) error {
		b := bench.New(s, p)
		b.Say, b.Out, b.JSON = c.Say, c.Stdout, c.JSON
		if err := b.MayDelete(ctx); err != nil {
			return failure.Answer(failure.Cause(ctx, err))
		}
		tell := c.Say.Always // what is agreed to must be seen
		if yes {
			tell = c.Say.Note
		}
		for _, line := range b.Offer(ctx) {
			tell("%s", line)
		}
		if !yes {
			if err := c.Confirm(ctx, "Go on? [y/N] ", "nothing was measured"); err != nil {
				return failure.Answer(err)
			}
		}
		return b.Run(ctx)
	})
}
