package hold

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/holding"
	"github.com/leasehold-go/leasehold/internal/cli/probes"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/serve"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/visible"
)

type electFlags struct {
	runFlags
	watch bool
	asks  bool   // value of --step-down, which asks the leader to resign
	http  string // address that answers health probes, from --http; empty if not given
}

// Elect returns the command "leasehold elect".
func (c *Commands) Elect() *cobra.Command {
	f := electFlags{runFlags: runFlags{wantedFlags: wantedFlags{Wanted: holding.Wanted{Leads: true}, lease: arguments.Lasting(protocol.DefaultLease)}, grace: arguments.Lasting(defaultGrace)}}
	cmd := &cobra.Command{
		Use:               "elect KEY [flags] -- CMD [ARG...]",
		Short:             "Run CMD whenever this process leads",
		Annotations:       map[string]string{arguments.RunsCMD: arguments.UnlessWatch},
		ValidArgsFunction: c.AnyKey,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.watch:
				return runsNothing(cmd, args, "watch")
			case f.asks:
				return runsNothing(cmd, args, "step-down")
			}
			return keyAndCommand(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.watch:
				return c.watchLeader(cmd, args[0])
			case f.asks:
				return c.stepDown(cmd, args[0])
			}
			return c.elect(cmd, &f, args[0], args[1:])
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.Value, "value", "", "show `TEXT` to observers, such as an address")
	fl.BoolVar(&f.watch, "watch", false, "print the leader and every change of leader")
	fl.BoolVar(&f.asks, "step-down", false, "ask the leader to end its CMD and resign, and wait until it has")
	fl.VarP(&f.lease, "lease", "l", "a dead leader is replaced after `DURATION`")
	fl.StringVar(&f.http, "http", "", "answer GET /leader and GET /live at `ADDR`, HOST:PORT; without HOST on loopback")
	commandFlags(fl, &f.runFlags)
	return cmd
}

// runsNothing checks the arguments of elect with --watch or --step-down. The parameter "flag" is
// "watch" or "step-down". With either flag, elect does not campaign. So runsNothing rejects a CMD,
// and flags that matter only to a process that campaigns.
func runsNothing(cmd *cobra.Command, args []string, flag string) error {
	if cmd.ArgsLenAtDash() >= 0 {
		return failure.MisuseOf(cmd, "--%s and CMD: use one of them", flag)
	}
	for _, name := range []string{"step-down", "value", "lease", "signal", "grace", "background", "die-with-parent", "events", "http"} {
		if name != flag && cmd.Flags().Changed(name) {
			return failure.MisuseOf(cmd, "--%s and --%s: use one of them", flag, name)
		}
	}
	return arguments.OneKey(cmd, args)
}

// elect campaigns for leadership and runs CMD during each term. It returns when CMD exits
// by itself or a signal arrives. If the term is lost, or this process is asked to resign,
// elect campaigns again.
func (c *Commands) elect(cmd *cobra.Command, f *electFlags, key string, command []string) error {
	j, err := c.newJob(cmd, &f.runFlags, command)
	if err != nil {
		return err
	}
	if err := c.Say.OpenEvents(f.events, c.Now()); err != nil {
		return err
	}
	// The probes of --http report renewals as overdue once less than (lease - MaxSkew) / 3 of
	// trusted time is left. If the grace period is longer, it replaces this limit, because elect
	// stops CMD one grace period before trust ends. A renewal normally begins while at least 2/3 of
	// the trusted time is left.
	seat := probes.NewSeat(c.Now, max(durations.Less(f.Lease, f.records.Proto.Skew())/3, j.Grace))
	answer := func() {}
	if f.http != "" {
		listener, err := serve.ForProbes(cmd.Context(), f.http)
		if err != nil {
			return err
		}
		defer listener.Close() // server.Close closes the listener only if Serve was called on it
		server := serve.Probes(seat.Handler(), listener)
		defer server.Close()
		answer = func() {
			go func() { _ = server.Serve(listener) }() // Serve returns after Close, and retries after temporary errors
			c.Say.Note("answering http://%s/leader and /live", listener.Addr())
		}
	}
	f.Keys = []string{key}
	f.Saw = func(holder leasehold.Record) { seat.Saw(leaderOf(holder)) }
	return c.seeking(cmd, &f.wantedFlags, func(s *store.Store, seeker *holding.Seeker) error {
		answer() // starts the server only now that elect catches signals, because a program may send a signal as soon as its probe is answered
		for {
			h, err := seeker.Acquire(cmd.Context())
			if err != nil {
				return failure.Answer(err)
			}
			seat.Won(h, leaderOf(h.Record()))
			ended, err := h.Run(j)
			seat.Left()
			switch lost := errors.Is(err, leasehold.ErrLost); {
			case !lost && (!ended.Resigned || ended.Signal != 0):
				return err
			case ended.Signal != 0: // the user has sent a signal to end elect: do not campaign again
				return failure.Exit(failure.CodeSignal+int(ended.Signal), nil)
			case lost:
				c.Say.Text("%s; campaigning again", failure.Text(err, s.Where()))
			default:
				c.Say.Text("%s has resigned; campaigning again", h)
			}
		}
	})
}

// leaderOf returns the leader that the record of an election's lock contains.
func leaderOf(r leasehold.Record) election.Leader {
	return election.Leader{Owner: r.Owner, Value: string(r.Data), Token: r.Token}
}

// stepDown asks the leader of key to resign, and waits until it has resigned.
func (c *Commands) stepDown(cmd *cobra.Command, key string) error {
	return c.OnTable(cmd, leasehold.Config{}, func(ctx context.Context, t *store.Table) error {
		e, err := election.New(t.Locks, key)
		if err != nil {
			return err
		}
		c.Say.Note("asking the leader of %s to step down, and waiting until it has", wording.Name(key))
		end := c.waitFor(ctx, t, key)
		err = e.StepDown(ctx)
		end()
		switch {
		case errors.Is(err, election.ErrNoLeader):
			return failure.Like(err, "nobody leads "+wording.Name(key))
		case errors.Is(err, election.ErrLeaderDead):
			return failure.Like(err, "the leader of "+wording.Name(key)+" appears dead, and cannot be asked: the next candidate takes over, see leasehold get "+wording.ShellWord(key))
		}
		return err
	})
}

// waitFor prints messages until stepDown calls end. A terminal shows a line about the leader,
// updated every second. When the leader's lease and one more second have passed, waitFor prints
// advice once, because a live leader has read the request by then. Without a leader's record, it
// prints nothing.
func (c *Commands) waitFor(ctx context.Context, t *store.Table, key string) (end func()) {
	r, err := t.Locks.Get(ctx, key)
	if err != nil || r.Released {
		return func() {}
	}
	began, advised := c.Now(), false
	return c.Say.EachSecond(func() {
		now := c.Now()
		lasts := now.Sub(began)
		line := fmt.Sprintf("waiting for %s, who leads %s, to step down: asked %s ago", wording.Owner(r.Owner), r.Key.String(), wording.Age(lasts))
		if !advised && lasts > durations.Sum(r.Lease, time.Second) { // a dead leader's lease has expired by now, so this leader is live but has not resigned
			advised = true
			e := say.NewEvent(string(leasehold.EventWaiting), now).Of(r.Key, 0)
			e.Holder, e.LastsMs = &say.Record{Table: t.Table, Region: t.Region(), Record: r}, say.Millis(lasts)
			e.Advice = fmt.Sprintf("it has not resigned: to take its term at once, leasehold break %s --token %d", wording.ShellKey(r.Key), r.Token)
			c.Say.Tell(e, "%s: %s", line, e.Advice)
		}
		if c.Say.Rewrites() {
			c.Say.Rewrite(line)
		}
	})
}

// Leader is one line of "elect --watch --json". While no process leads, the line contains
// only the time.
type Leader struct {
	Time string `json:"time"`
	*seat
}

type seat struct {
	Owner string `json:"owner"`
	Value string `json:"value"`
	Token int64  `json:"token"`
}

// watchLeader prints the current leader, and then each new leader, until a signal arrives.
func (c *Commands) watchLeader(cmd *cobra.Command, key string) error {
	return c.OnTable(cmd, leasehold.Config{}, func(ctx context.Context, t *store.Table) error {
		e, err := election.New(t.Locks, key)
		if err != nil {
			return err
		}
		for l, err := range e.Observe(ctx) {
			if err != nil {
				return err
			}
			c.Say.Clear()
			if err := c.sayLeader(l); err != nil {
				return err
			}
		}
		return context.Cause(ctx)
	})
}

// sayLeader prints the leader l as a sentence on a terminal, as tab-separated values in a
// pipe, or as a JSON object with --json. A zero l means that no process leads.
func (c *Commands) sayLeader(l election.Leader) error {
	now, nobody := c.Now(), l == election.Leader{}
	out := Leader{Time: wording.Time(now)}
	if !nobody {
		out.seat = &seat{l.Owner, l.Value, l.Token}
	}
	line := now.Local().Format(time.TimeOnly) + "  " + wording.Owner(l.Owner) + " leads"
	switch {
	case !c.Stdout.Terminal:
		line = say.Tabbed(out.Time, wording.Cell(l.Owner), wording.Cell(l.Value), wording.Token(l.Token))
	case nobody:
		line = now.Local().Format(time.TimeOnly) + "  nobody leads"
	case l.Token != 0:
		line += fmt.Sprintf(", term %d", l.Token)
	}
	if l.Value != "" && c.Stdout.Terminal {
		line += ": " + visible.Word(l.Value)
	}
	return c.Print(out, "%s\n", line)
}
