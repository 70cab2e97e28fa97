package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// printHelp prints the help of a command, with what is used every day.
func printHelp(cmd *cobra.Command, _ []string) { printHelpOf(cmd, false) }

// printHelpOf prints the help of a command. all: the advanced commands and flags too.
func printHelpOf(cmd *cobra.Command, all bool) {
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
		printCommands(w, cmd, all)
	}
	flags := cmd.Flags()
	if cmd.HasParent() {
		flags = cmd.LocalFlags()
	}
	shown, rest := split(cmd, flags)
	fmt.Fprintf(w, "\nFlags:\n%s", shown.FlagUsagesWrapped(helpWidth))
	if all && rest.HasFlags() {
		fmt.Fprintf(w, "\nAdvanced flags:\n%s", rest.FlagUsagesWrapped(helpWidth))
	}
	if hasDuration(shown) || all && hasDuration(rest) {
		fmt.Fprint(w, "\n"+durationNote+"\n")
	}
	if cmd.Example != "" {
		fmt.Fprintf(w, "\nExamples:\n%s\n", cmd.Example)
	}
	if cmd.HasParent() {
		fmt.Fprintln(w, "\nGlobal flags: leasehold --help")
	}
	if hasAdvanced(cmd) && !all {
		fmt.Fprintf(w, "\nThere is more: leasehold help%s %s\n", strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()), advancedWord)
	}
	if !cmd.HasParent() {
		fmt.Fprint(w, "\nTopics:\n  leasehold help exit-codes, leasehold help environment, leasehold help events,\n  leasehold help json\n")
	}
}

// helpWidth is how wide a line of help may be: a terminal's usual 80 columns.
const helpWidth = 80

const durationNote = "DURATION is a number of seconds, as in timeout(1), or such as 90s, 10m or 1h30m."

func hasDuration(flags *pflag.FlagSet) bool {
	found := false
	flags.VisitAll(func(f *pflag.Flag) { found = found || f.Value.Type() == durationFlag{}.Type() })
	return found
}

// usageLine is the full path of a command in front of its Use.
func usageLine(cmd *cobra.Command) string {
	if cmd.HasParent() {
		return cmd.Parent().CommandPath() + " " + cmd.Use
	}
	return cmd.Use
}

func printCommands(w io.Writer, cmd *cobra.Command, all bool) {
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
			if sub.GroupID == g.ID && sub.IsAvailableCommand() && (all || !isAdvancedCommand(sub)) {
				fmt.Fprintf(w, "  %-*s %s\n", widest, sub.Name(), sub.Short)
			}
		}
	}
}

// newHelp is the command help, for commands and topics.
func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND] [advanced]", Short: "Help about a command or a topic", Hidden: true,
		RunE: func(_ *cobra.Command, args []string) error {
			all := len(args) > 0 && args[len(args)-1] == advancedWord
			if all {
				args = args[:len(args)-1]
			}
			found, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return usageOf(root, "unknown command or topic %s", visible.Name(strings.Join(args, " ")))
			}
			found.InitDefaultHelpFlag()
			if all && found.Runnable() {
				printHelpOf(found, true)
				return nil
			}
			return found.Help()
		},
	}
}

func newExitCodesTopic() *cobra.Command {
	return &cobra.Command{
		Use: "exit-codes", Short: "What the exit codes mean",
		Long: `Exit codes of run and elect, and of local with CMD, as in timeout(1):
  CMD's     the lock was held until CMD ended; a failed release is a warning
  75        KEY was not granted (-n, -w); -E changes this code
  123       the lock was lost and CMD was stopped; elect campaigns again instead
  125       leasehold failed and CMD was not run: usage, no table, access denied
  126, 127  CMD is not executable, or was not found
  128+N     signal N ended CMD, or the wait for KEY

Exit codes of all other commands, as in grep(1):
  0         yes, or done
  1         no: held, lost, not found, changed, does not fit
  2         error: usage, AWS, network
  128+N     signal N ended a wait; 141: the reader of the output closed it`,
	}
}

func newEventsTopic() *cobra.Command {
	return &cobra.Command{
		Use: "events", Short: "What run and elect report, for programs",
		Long: `Events of run and elect: one JSON object a line, on standard error with --json.
CMD may write there too, so a program had better name another place:
  leasehold run --events 3 KEY -- CMD 3>events     a file descriptor's number
  leasehold run --events events KEY -- CMD         a file, which is appended to
Standard error then has text, or with --json what is no event. CMD does not
inherit the descriptor, unless it is 1 or 2. If nothing can be written there,
CMD is not run (125). If that fails later, or if the reader is too slow, events
are dropped: the lock and CMD never wait for them.

Every event has a time (RFC 3339, UTC, with milliseconds) and a kind, event. One
that is about a lock has its key, sortKey if there is one, and token once it is
granted. Durations are in milliseconds. Ignore kinds and fields you do not know.

  started      --events only: the first. pid: of leasehold
  waiting      somebody holds the key: at first, then at most once a minute.
               holder: the record, as get --json prints it; holdersSeen
  granted      tookMs: since the start; holdersSeen: how many held it meanwhile
  renew_error  a renewal failed, and is tried again.
               error; remainingMs: until the lock is no longer trusted
  stopping     CMD was sent the signal, as the lock is lost or about to be
  lost         error
  background   CMD has ended, and processes that it started still run.
               processes: pid and name of each
  exited       CMD has ended, and what it left running, unless that is kept.
               exitCode: of CMD
  released     tookMs
  throttled    DynamoDB has throttled every request, for 3s and more: then at
               most once a minute. lastsMs, error; advice: what to do
  no_answer    likewise, if no request is answered
  answered     one was answered again. lastsMs
  request      with -v: a request was answered, or not. operation; keys, if it
               has several; attempt, counted from the last answer; requestId;
               units: of capacity; tookMs; outcome: ok, or what went wrong
  ended        --events only: the last. exitCode: of leasehold; if it failed,
               also error, kind (held, lost, not_found, changed, bad_record,
               no_table, unsupported, usage, aws, unknown) and holder, if known.
               Without this event, leasehold was killed

With --json, the other commands write throttled, no_answer, answered and request
to standard error too, and acquire writes waiting.`,
	}
}

func newEnvironmentTopic() *cobra.Command {
	return &cobra.Command{
		Use: "environment", Short: "Variables that leasehold reads, and sets for CMD",
		Long: `Read, unless a flag says otherwise:
  LEASEHOLD_TABLE     --table
  LEASEHOLD_FILE      --file
  LEASEHOLD_LAYOUT    --layout
  LEASEHOLD_REGION, LEASEHOLD_PROFILE, LEASEHOLD_ENDPOINT_URL
                      --region, --profile, --endpoint-url
  LEASEHOLD_OWNER     --owner
  LEASEHOLD_LEASE     --lease
  LEASEHOLD_REQUIRE_TABLE
                      1: use a local store only if --file names it
  AWS_*               read by the AWS SDK as usual: region, profile, credentials
  NO_COLOR            no colour if not empty
  XDG_STATE_HOME      the user's local store is kept in its leasehold/
                      directory; default ~/.local/state

Precedence: flag, LEASEHOLD_*, AWS settings, default. --table or --file on the
command line overrides both LEASEHOLD_TABLE and LEASEHOLD_FILE. Without such a
flag, setting both variables is an error. A flag or LEASEHOLD_* variable that is
set but empty is an error too. There is no configuration file.

A file that is named is made by commands that acquire, which say so, if its
directory is there. Commands that look at locks or mend them need it to exist.

If neither a table nor a file is named, leasehold uses a local store and says
so (not with -q); at a terminal once for each store. If there is any sign of AWS
(a setting, or this machine is an EC2 instance), that is an error instead: a
cron job that lost its variable must not lock on one machine only. What is run
from its own source (go run ./cmd/leasehold) uses a local store all the same: it
is being tried out.

  /var/lib/leasehold/locks.db    if that directory exists: shared by all users
                                 of this machine. A user who cannot write to it
                                 gets an error, never another store.
  leasehold/locks.db in XDG_STATE_HOME
                                 otherwise: for processes of one user on this
                                 machine only

An administrator creates the machine's store for a group, or for everybody:
  install -d -m 2770 -g GROUP /var/lib/leasehold
  install -d -m 1777 /var/lib/leasehold
Anybody who can write to it can break every lock in it.

Set for the CMD of run and elect:
  LEASEHOLD_KEY, LEASEHOLD_SORT_KEY    the key that is held
  LEASEHOLD_OWNER                      its owner, as the record shows it
  LEASEHOLD_TOKEN                      the fencing token
  LEASEHOLD_KEYS, LEASEHOLD_TOKENS     those of all keys, one a line, if there
                                       are several; the above are of the first
  LEASEHOLD_TABLE or LEASEHOLD_FILE    the table, or the local store
  LEASEHOLD_LAYOUT                     the layout, if not native
  LEASEHOLD_REGION, LEASEHOLD_PROFILE, LEASEHOLD_ENDPOINT_URL
                                       what --region, --profile and
                                       --endpoint-url said: a leasehold below
                                       finds the table by them, and AWS programs
                                       are told nothing
  LEASEHOLD_HELD                       every key held by this and outer runs, as
                                       JSON: waiting for one of them is an error

CMD runs in its own process group. INT, TERM, HUP, QUIT, USR1, USR2, ALRM,
VTALRM, WINCH, TSTP and CONT are passed on to it. PIPE is not: leasehold gets
one whenever its standard error is closed.

A watchdog process stops that group, and on Linux every other process that CMD
started, before trust in the lock ends, even if leasehold itself has been
stopped (SIGSTOP) or killed. Once leasehold was killed, those outside the group
are found by LEASEHOLD_HELD in their environment, as far as this user may see
that: one that runs as another user (sudo), or hides it (setuid), is not. With
--background keep the watchdog stops the group alone. On other systems a process
that leaves the group, as by setsid, is neither waited for nor stopped; on
Windows CMD alone is. If the whole container or machine was frozen, the watchdog
was frozen too: CMD may then run for some milliseconds before it is killed. In
that time only writes fenced by the token are safe.

Set for the CMD of local: AWS_ENDPOINT_URL_DYNAMODB, and a placeholder region
and credentials if none are set.`,
	}
}

// newJSONTopic is leasehold help json, and with --json the schema itself.
func (a *app) newJSONTopic() *cobra.Command {
	cmd := &cobra.Command{Use: "json", Short: "What --json prints, and the columns in a pipe"}
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		w := cmd.OutOrStdout()
		if a.flags.json {
			_, _ = w.Write(say.Schema)
			return
		}
		_ = say.WriteSchema(w, helpWidth)
	})
	return cmd
}
