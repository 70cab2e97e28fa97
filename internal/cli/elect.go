package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
)

type electFlags struct {
	runFlags
	value string
	watch bool
}

func (a *app) newElect() *cobra.Command {
	f := electFlags{runFlags: runFlags{acquireFlags: acquireFlags{lease: defaultLease}, grace: defaultGrace}}
	cmd := &cobra.Command{
		Use:   "elect KEY [flags] -- CMD [ARG...]",
		Short: "Run CMD whenever this process leads",
		Long: `Run CMD while this process is the leader under KEY.

Campaigns, runs CMD when elected, stops it when leadership is lost, and
campaigns again. Ends when CMD exits by itself, with CMD's code.
With --watch it runs nothing and prints every change of leader.`,
		Example: `  leasehold elect scheduler --value "$HOSTNAME:8080" -- ./scheduler
  leasehold elect scheduler --watch`,
		Annotations: map[string]string{runsCMD: unlessWatch},
		Args: func(cmd *cobra.Command, args []string) error {
			if f.watch {
				return watchesOnly(cmd, args)
			}
			return keyAndCommand(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.watch {
				return a.watchLeader(cmd, args[0])
			}
			return a.elect(cmd, &f, args[0], args[1:])
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.value, "value", "", "`TEXT` that observers see, such as an address")
	fl.BoolVar(&f.watch, "watch", false, "print the leader and every change")
	fl.VarP(durationFlag{d: &f.lease}, "lease", "l", "a dead leader is replaced after `DURATION`")
	fl.StringVarP(&f.signal, "signal", "s", "TERM", "`SIGNAL` that tells CMD the lock is lost")
	fl.VarP(durationFlag{d: &f.grace}, "grace", "g", "`DURATION` CMD has from the signal to KILL; both come before trust ends")
	fl.StringVar(&f.owner, "owner", "", "`NAME` shown to others (default host/pid/random)")
	return cmd
}

// watchesOnly refuses what --watch does not go with: it runs nothing.
func watchesOnly(cmd *cobra.Command, args []string) error {
	if cmd.ArgsLenAtDash() >= 0 {
		return usageOf(cmd, "--watch runs no CMD: leave one of them out")
	}
	for _, name := range []string{"value", "lease", "signal", "grace", "owner"} {
		if cmd.Flags().Changed(name) {
			return usageOf(cmd, "--watch and --%s: use one of them", name)
		}
	}
	return oneKey(cmd, args)
}

// elect runs CMD under one term after the other, until it ends under one.
func (a *app) elect(cmd *cobra.Command, f *electFlags, key string, command []string) error {
	j, err := a.newJob(cmd, &f.runFlags, command)
	if err != nil {
		return err
	}
	s, err := a.open(cmd, "")
	if err != nil {
		return err
	}
	defer s.close()
	if err := a.refuseNested(s, key, ""); err != nil {
		return err
	}
	f.ask = func(ctx context.Context, locks *leasehold.Client, key string, opts ...leasehold.AcquireOption) (*leasehold.Lock, error) {
		return election.New(locks, key).Campaign(ctx, f.value, opts...)
	}
	signals := catchSignals()
	defer signals.release()
	for {
		heard := a.newRenewals(s)
		g, err := a.acquireFor(cmd.Context(), s, key, &f.acquireFlags, signals, heard.event)
		if err != nil {
			return no(err)
		}
		term := a.supervision(s, key, g.lock, signals, heard, j)
		err = term.run()
		closeLocks(g.locks)
		switch {
		case !errors.Is(err, leasehold.ErrLost):
			return err
		case term.asked != 0: // whoever asked for the end wants no other CMD
			return exit(codeSignal+int(term.asked), nil)
		}
		a.say.text("%s; campaigning again", words(err, s.table+" in "+s.location))
		s.watch = a.watchWait(s)
	}
}
