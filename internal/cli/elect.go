package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/holding"
	"github.com/leasehold-go/leasehold/internal/cli/store"
)

type electFlags struct {
	runFlags
	watch bool
}

func (a *app) newElect() *cobra.Command {
	f := electFlags{runFlags: runFlags{wantedFlags: wantedFlags{Wanted: holding.Wanted{Lease: defaultLease, Leads: true}}, grace: defaultGrace}}
	cmd := &cobra.Command{
		Use:   "elect KEY [flags] -- CMD [ARG...]",
		Short: "Run CMD whenever this process leads",
		Long: `Run CMD while this process is the leader under KEY.

Campaigns for leadership and runs CMD when elected. If leadership is lost, stops
CMD and campaigns again. When CMD exits by itself, exits with CMD's code.
With --watch, runs nothing and prints every change of leader.`,
		Example: `  leasehold elect scheduler --value "$HOSTNAME:8080" -- ./scheduler
  leasehold elect scheduler --watch`,
		Annotations:       map[string]string{runsCMD: unlessWatch},
		ValidArgsFunction: a.completeKeys(anyRecord),
		Args: func(cmd *cobra.Command, args []string) error {
			if f.watch {
				return onlyWatch(cmd, args)
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
	fl.StringVar(&f.Value, "value", "", "show `TEXT` to observers, such as an address")
	fl.BoolVar(&f.watch, "watch", false, "print the leader and every change of leader")
	fl.VarP(durationFlag{d: &f.Lease}, "lease", "l", "a dead leader is replaced after `DURATION`")
	lineFlag(fl, &f.wantedFlags)
	commandFlags(fl, &f.runFlags)
	return cmd
}

// onlyWatch refuses arguments and flags that make no sense with --watch, which
// runs nothing.
func onlyWatch(cmd *cobra.Command, args []string) error {
	if cmd.ArgsLenAtDash() >= 0 {
		return usageOf(cmd, "--watch and CMD: use one of them")
	}
	for _, name := range []string{"value", "lease", "signal", "grace", "background", "owner", "events", "line"} {
		if cmd.Flags().Changed(name) {
			return usageOf(cmd, "--watch and --%s: use one of them", name)
		}
	}
	return oneKey(cmd, args)
}

// elect campaigns and runs CMD, term after term, until CMD exits by itself.
func (a *app) elect(cmd *cobra.Command, f *electFlags, key string, command []string) error {
	j, err := a.newJob(cmd, &f.runFlags, command)
	if err != nil {
		return err
	}
	if err := a.say.OpenEvents(f.events, a.Now()); err != nil {
		return err
	}
	s, err := a.open(cmd, store.Opening{Make: true})
	if err != nil {
		return err
	}
	defer s.Close()
	f.Keys = []string{key}
	seeker, err := a.seek(s, &f.wantedFlags)
	if err != nil {
		return err
	}
	defer seeker.Close()
	for {
		h, err := seeker.Acquire(cmd.Context())
		if err != nil {
			return failure.Answer(err)
		}
		ended, err := h.Run(j)
		switch {
		case !errors.Is(err, leasehold.ErrLost):
			return err
		case ended.Signal != 0: // the user wants to end this, not to start CMD again
			return failure.Exit(failure.CodeSignal+int(ended.Signal), nil)
		}
		a.say.Text("%s; campaigning again", failure.Text(err, s.Where()))
	}
}
