package cli

import (
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// version is that of the module, as go install and go build -buildvcs know it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

// printHelp prints the help of a command.
func printHelp(cmd *cobra.Command, _ []string) {
	w := cmd.OutOrStdout()
	if cmd.Long == "" {
		fmt.Fprintln(w, cmd.Short+".")
	} else {
		fmt.Fprintln(w, cmd.Long)
	}
	if !cmd.Runnable() && !cmd.HasSubCommands() {
		return // a topic
	}
	fmt.Fprintf(w, "\nUsage:\n  %s\n", usageLine(cmd))
	if cmd.HasAvailableSubCommands() {
		printCommands(w, cmd)
	}
	if cmd.HasParent() {
		fmt.Fprintf(w, "\nFlags:\n%s", cmd.LocalFlags().FlagUsages())
	} else {
		fmt.Fprintf(w, "\nFlags:\n%s", cmd.Flags().FlagUsages())
	}
	if cmd.Example != "" {
		fmt.Fprintf(w, "\nExamples:\n%s\n", cmd.Example)
	}
	if cmd.HasParent() {
		fmt.Fprintln(w, "\nGlobal flags: leasehold --help")
	} else {
		fmt.Fprint(w, "\nMore:\n  leasehold help exit-codes, leasehold help environment\n")
	}
}

// usageLine is the full path of a command in front of its Use.
func usageLine(cmd *cobra.Command) string {
	if cmd.HasParent() {
		return cmd.Parent().CommandPath() + " " + cmd.Use
	}
	return cmd.Use
}

func printCommands(w io.Writer, cmd *cobra.Command) {
	groups := cmd.Groups()
	if len(groups) == 0 {
		groups = []*cobra.Group{{Title: "Commands:"}}
	}
	widest := 11 // as cobra's own
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			widest = max(widest, len(sub.Name()))
		}
	}
	for _, g := range groups {
		fmt.Fprintf(w, "\n%s\n", g.Title)
		for _, sub := range cmd.Commands() {
			if sub.GroupID == g.ID && sub.IsAvailableCommand() {
				fmt.Fprintf(w, "  %-*s %s\n", widest, sub.Name(), sub.Short)
			}
		}
	}
}

// newHelp is the command help, for commands and topics.
func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Help about a command or a topic", Hidden: true,
		RunE: func(_ *cobra.Command, args []string) error {
			about, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return usageOf(root, "there is no command or topic %s", printable(strings.Join(args, " ")))
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

func newExitCodesTopic() *cobra.Command {
	return &cobra.Command{
		Use: "exit-codes", Short: "What the exit codes mean",
		Long: `Exit codes of run and elect, and of local with CMD, as those of timeout(1):
  CMD's     CMD ran under the lock throughout; that the release failed is a warning
  123       the lock was lost, and CMD was stopped; elect campaigns again instead
  124       the key was not granted (-n, -w); -E changes this code
  125       leasehold failed and CMD was not run: usage, no table, access denied
  126, 127  CMD is not executable, or was not found
  128+N     CMD, or the wait for the key, was ended by signal N

Exit codes of all other commands, as those of grep(1):
  0         yes, or done
  1         no: held, lost, not found, changed, does not fit
  2         trouble: usage, AWS, network
  128+N     a wait was ended by signal N; 141: nobody reads the output any more`,
	}
}

func newEnvironmentTopic() *cobra.Command {
	return &cobra.Command{
		Use: "environment", Short: "What is read from the environment, and set for CMD",
		Long: `Read, where no flag says otherwise:
  LEASEHOLD_TABLE     --table
  LEASEHOLD_FILE      --file
  LEASEHOLD_LAYOUT    --layout
  LEASEHOLD_OWNER     --owner
  LEASEHOLD_LEASE     --lease
  LEASEHOLD_REQUIRE_TABLE
                      1: no local store unless --file names it
  AWS_*               by the AWS SDK, as everywhere: region, profile, credentials
  NO_COLOR            no colour if not empty
  XDG_STATE_HOME      where a user's local store and what was observed are kept,
                      in leasehold/; default ~/.local/state

A flag comes before LEASEHOLD_*, that before the AWS settings, those before the
default. --table or --file on the command line sets both LEASEHOLD_TABLE and
LEASEHOLD_FILE aside; both without a flag are an error, and so is a LEASEHOLD_*
or a flag that is set and empty. There is no configuration file.

With neither table nor file the store is a local one, and that is said each
time, even with -q. Where anything speaks of AWS - a setting, or that this
machine is an EC2 instance - it is an error instead: a cron line that lost its
variable must not lock one machine only.

  /var/lib/leasehold/locks.db    if that directory is there: for all users of
                                 this machine. Who cannot write to it gets an
                                 error, never another store.
  leasehold/locks.db in XDG_STATE_HOME
                                 otherwise: for processes of one user on this
                                 machine only

An administrator makes the machine's store for a group, or for everybody:
  install -d -m 2770 -g GROUP /var/lib/leasehold
  install -d -m 1777 /var/lib/leasehold
Whoever may write to it can break every lock in it.

Set for the CMD of run and elect:
  LEASEHOLD_KEY, LEASEHOLD_SORT_KEY    what is held
  LEASEHOLD_OWNER                      by whom, as the record shows it
  LEASEHOLD_TOKEN                      the fencing token
  LEASEHOLD_TABLE or LEASEHOLD_FILE    where
  LEASEHOLD_LAYOUT                     in which layout, if not native
  LEASEHOLD_HELD                       every key that is held above it, as JSON:
                                       to wait for one of those is an error

CMD runs in a process group of its own. A second process of leasehold stops
that group before trust in the lock ends, even if leasehold itself was
stopped (SIGSTOP) or killed by then. What stands still as a whole - a frozen
container, a suspended machine - wakes as a whole: CMD may run for some
milliseconds before it is killed. Only writes that are fenced by the token are
safe then.

Set for the CMD of local: AWS_ENDPOINT_URL_DYNAMODB, and made-up credentials
and region where there are none.`,
	}
}
