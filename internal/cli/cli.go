// Package cli implements the command leasehold: the tree of its commands, their help and
// their exit codes.
//
//	cli.go        runs a command and turns its error into an exit code; defines the flags
//	              that all commands share, the command help, and the order of commands in
//	              the help; the directory topics contains the help texts
//	completion.go completes keys and flags in a shell
//
// The commands are in the packages below internal/cli/commands, one package for each group
// in the help. The other packages below internal/cli are used by several commands. Read
// package invocation first.
//
// The tests of package cli run whole commands, as users do. A test of a single package is
// in that package.
package cli

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/build"
	"github.com/leasehold-go/leasehold/internal/cli/commands/hold"
	"github.com/leasehold-go/leasehold/internal/cli/commands/inspect"
	"github.com/leasehold-go/leasehold/internal/cli/commands/repair"
	"github.com/leasehold-go/leasehold/internal/cli/commands/setup"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/invocation"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/visible"
	"github.com/leasehold-go/leasehold/layout"
)

// Main runs the command line in env.Args and returns its exit code.
func Main(env invocation.Env) int {
	// A write to standard error causes SIGPIPE if its reader has exited. The message is then
	// lost, but this process must survive, because its exit code must be correct. The signal
	// stays caught until Flush has written the last message.
	if broken := make(chan os.Signal, 1); !signal.Ignored(syscall.SIGPIPE) {
		signal.Notify(broken, syscall.SIGPIPE)
		defer signal.Stop(broken)
	}
	in := invocation.New(env)
	root := newRoot(in)
	root.SetArgs(env.Args)
	root.SetOut(helpOutput{in.Stdout})
	root.SetErr(in.Stderr)
	cmd, err := root.ExecuteContextC(context.Background())
	if err == nil {
		err = in.Stdout.Failed // help and --version do not return the error of a failed write to standard output
	}
	in.Say.Clear()
	defer in.Say.Flush()
	code := exitCode(in, cmd, err)
	if failed := in.Metrics.Write(in.Now(), code, err); failed != nil {
		in.Say.Note("%v", failed)
	}
	in.Say.EndEvents(in.Now(), code, err)
	return code
}

// helpOutput is a writer for help that reports success to cobra even if a write fails.
// Otherwise cobra would print the error, and Main would print the same error again.
type helpOutput struct{ io.Writer }

func (o helpOutput) Write(b []byte) (int, error) {
	_, _ = o.Writer.Write(b)
	return len(b), nil
}

// exitCode returns the exit code for err. It also prints err, unless err is meant to be
// silent.
func exitCode(in *invocation.Invocation, cmd *cobra.Command, err error) int {
	if err == nil {
		return 0
	}
	if readerGone(err, in.Env.Stdout) {
		return failure.CodeSignal + int(syscall.SIGPIPE) // no message: the command ends with the exit code of a process killed by SIGPIPE
	}
	// If a flag is invalid, cobra ignores the flags after it and does not call
	// PersistentPreRunE, which otherwise calls Configure. So look for --json and call Configure
	// here. Ignore a --json after "--", because it is an argument of CMD.
	flag, dashes := slices.Index(in.Args, "--json"), slices.Index(in.Args, "--")
	in.JSON = in.JSON || flag >= 0 && (dashes < 0 || flag < dashes)
	in.Say.Configure(in.Quiet, in.JSON)
	// With -n or -w, ErrHeld is an expected result: another client holds KEY. With -q,
	// leasehold reports it only by the exit code, without a message.
	if isAnswer := in.Quiet && errors.Is(err, leasehold.ErrHeld); !failure.Silent(err) && !isAnswer {
		in.Say.Fail(err)
	}
	if code, ok := failure.As[*failure.ExitError](err); ok {
		return code.Code
	}
	return troubleCode(cmd, in.Args)
}

// readerGone reports whether err comes from a write to standard output that failed because the
// pipe's reader, such as head(1), has closed it.
func readerGone(err error, stdout io.Writer) bool {
	f, ok := stdout.(*os.File)
	var at *fs.PathError
	return ok && errors.As(err, &at) && at.Path == f.Name() && errors.Is(at.Err, syscall.EPIPE)
}

// troubleCode returns the exit code for a failure of leasehold itself: 125 if leasehold was to run
// a CMD, otherwise 2. The first code is 125, as in timeout(1), because CMD itself could exit with a
// small code, such as 2.
func troubleCode(cmd *cobra.Command, args []string) int {
	var runs bool
	switch cmd.Annotations[arguments.RunsCMD] {
	case arguments.Always:
		runs = true
	case arguments.UnlessWatch:
		runs = !cmd.Flags().Changed("watch") && !cmd.Flags().Changed("step-down")
	case arguments.AfterDashes:
		runs = slices.Contains(args, "--")
	}
	if runs {
		return failure.CodeNotRun
	}
	return failure.CodeTrouble
}

// Command returns the tree of commands. Its callers print the manual or list the flags,
// but run no command.
func Command() *cobra.Command {
	env := invocation.Env{Stdout: io.Discard, Stderr: io.Discard, LookupEnv: func(string) (string, bool) { return "", false }}
	root := newRoot(invocation.New(env))
	root.InitDefaultHelpCmd()
	return root
}

// EnableCommandSorting is a global variable of cobra, so init sets it before any command
// runs. If the variable is false, the help lists the commands in the order in which newRoot
// adds them.
func init() {
	cobra.EnableCommandSorting = false
	cobra.AddTemplateFunc("contains", strings.Contains)
}

// newRoot builds the whole tree of commands, for one run of leasehold.
func newRoot(in *invocation.Invocation) *cobra.Command {
	root := &cobra.Command{
		Use:               "leasehold COMMAND [flags]",
		Short:             "Distributed locks on Amazon DynamoDB, for shells and operators",
		Version:           build.This().String(),
		Args:              cobra.ArbitraryArgs,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true}, // completion.go replaces cobra's own command
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			in.Say.Configure(in.Quiet, in.JSON)
			return refuseEmpty(cmd)
		},
		RunE: arguments.Subcommand,
	}
	helpTemplate, _ := texts.ReadFile("topics/help.tmpl") // cannot fail, because the file is embedded in the binary
	root.SetHelpTemplate(string(helpTemplate))
	root.SetHelpCommand(newHelp(root))
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return failure.MisuseOf(cmd, "%s", flagError(cmd, err)) })
	root.SetVersionTemplate("leasehold {{.Version}}\n")
	root.Flags().SortFlags = false
	root.Flags().Bool("version", false, "print the version")

	f := root.PersistentFlags()
	f.SortFlags = false
	f.StringVarP(&in.Settings.Table, "table", "t", "", "lock table, `NAME` or ARN")
	f.StringVar(&in.Settings.File, "file", "", "use the local store in `PATH` instead of DynamoDB: locks among processes on this machine that use PATH")
	in.Settings.Layout.Value = layout.Native{}.Name()
	f.Var(&in.Settings.Layout, "layout", "record `LAYOUT`: "+strings.Join(layout.Names(), ", "))
	f.Var(&in.Settings.Attributes, "attr", "attribute name that differs from the layout's, `ROLE=NAME`; roles: key, sort, ttl")
	f.StringVar(&in.Settings.Region, "region", "", "AWS `REGION`")
	f.StringVar(&in.Settings.Failover, "failover", "", "other `REGIONS` of the table, while --region is out")
	f.StringVar(&in.Settings.Profile, "profile", "", "AWS `PROFILE`")
	f.StringVar(&in.Settings.Endpoint, "endpoint-url", "", "DynamoDB `URL`, such as that of leasehold local")
	f.BoolVar(&in.JSON, "json", false, "print JSON")
	f.BoolVarP(&in.Quiet, "quiet", "q", false, "print errors only; a held KEY is not an error")
	f.BoolVarP(&in.Verbose, "verbose", "v", false, "log every request: key, attempt, capacity, time, outcome")

	add := func(group string, cmds ...*cobra.Command) {
		root.AddGroup(&cobra.Group{ID: group, Title: group})
		for _, cmd := range cmds {
			cmd.GroupID = group
			cmd.Flags().SortFlags = false
			root.AddCommand(cmd)
		}
	}
	ofHold, ofSetup := hold.Commands{Invocation: in}, setup.Commands{Invocation: in}
	toRead, toRepair := inspect.Commands{Invocation: in}, repair.Commands{Invocation: in}
	add("Hold:", ofHold.Run(), ofHold.Acquire(), ofHold.Renew(), ofHold.Release(), ofHold.Elect())
	add("Inspect and repair:", toRead.List(), toRead.Get(), toRepair.Break(), toRepair.Forget(), toRead.UI(), toRead.Doctor())
	add("Set up:", ofSetup.Table(), ofSetup.Local(), ofSetup.Demo(), newCompletion(in), newVersion(in))
	root.AddCommand(
		&cobra.Command{Use: "exit-codes", Short: "Meaning of the exit codes"},
		&cobra.Command{Use: "environment", Short: "Variables that leasehold reads, and sets for CMD"},
		newJSONTopic(in),
		&cobra.Command{Use: "events", Short: "Events of run and elect, for programs"},
	)
	describe(root)
	complete(in, root)
	return root
}

// refuseEmpty returns an error if a flag was given an empty value. In a script, an empty
// value usually comes from an unset variable. Without the error, the command would run as
// if the flag had been left out.
func refuseEmpty(cmd *cobra.Command) error {
	var err error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch {
		case err != nil, f.Value.Type() != "string", f.Value.String() != "":
		case f.Name == "data", f.Name == "value": // an empty text is a valid value of --data and --value
		default:
			err = failure.MisuseOf(cmd, "--%s is empty: give it a value, or leave it out", f.Name)
		}
	})
	return err
}

// flagError returns a message for an error of pflag: an unknown flag or an invalid value.
func flagError(cmd *cobra.Command, err error) string {
	if unknown, is := failure.As[*pflag.NotExistError](err); is && unknown.GetSpecifiedShortnames() == "" {
		return err.Error() + flagSuggestion(cmd, unknown.GetSpecifiedName())
	}
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return err.Error()
	}
	flag, value := "--"+bad.GetFlag().Name, visible.Name(bad.GetValue())
	var number *strconv.NumError
	switch {
	case !errors.As(err, &number):
		return fmt.Sprintf("%s %s: %v", flag, value, bad.Unwrap())
	case bad.GetFlag().Value.Type() == "bool":
		return fmt.Sprintf("%s=%s: use true or false, or %s alone", flag, value, flag)
	case errors.Is(number.Err, strconv.ErrRange):
		return fmt.Sprintf("%s %s: the number is too large", flag, value)
	}
	return fmt.Sprintf("%s %s: use a whole number", flag, value)
}

// flagSuggestion returns ", did you mean --FLAG?" for an unknown flag, or "" if cmd has no flag
// with a similar name. Cobra suggests only commands, so flagSuggestion makes a dummy command for
// each flag of cmd.
func flagSuggestion(cmd *cobra.Command, name string) string {
	flags := &cobra.Command{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			flags.AddCommand(&cobra.Command{Use: "--" + f.Name, Run: func(*cobra.Command, []string) {}})
		}
	})
	return arguments.Suggestion(flags, "--"+name)
}

// texts contains the help template (help.tmpl), and one text file for each command and
// topic.
//
//go:embed topics
var texts embed.FS

// helpText returns the help text and the examples of a command or topic. Both come from
// one file in the directory topics. helpText returns two empty strings if that file does
// not exist.
func helpText(name string) (text, examples string) {
	b, _ := texts.ReadFile("topics/" + name + ".txt")
	text, examples, _ = strings.Cut(strings.TrimSuffix(string(b), "\n"), "\n\nExamples:\n")
	return text, examples
}

// describe sets the fields Long and Example of cmd and, recursively, of its subcommands.
func describe(cmd *cobra.Command) {
	name := strings.TrimPrefix(cmd.CommandPath(), "leasehold ")
	cmd.Long, cmd.Example = helpText(strings.ReplaceAll(name, " ", "-"))
	for _, sub := range cmd.Commands() {
		describe(sub)
	}
}

func newVersion(in *invocation.Invocation) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version, the commit and the Go version", DisableFlagsInUseLine: true,
		Args: arguments.None,
		RunE: func(*cobra.Command, []string) error { return in.Print(build.This(), "leasehold %s\n", build.This()) },
	}
}

// newHelp returns the command "leasehold help", which describes a command or a topic. It
// replaces cobra's own help command, which exits with 0 if the named command does not
// exist.
func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Help about a command or a topic", Hidden: true, DisableFlagsInUseLine: true,
		RunE: func(_ *cobra.Command, args []string) error {
			found, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return failure.MisuseOf(root, "unknown command or topic %s", visible.Name(strings.Join(args, " ")))
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	}
}

// newJSONTopic returns the topic "leasehold help json". With --json, the topic prints the
// JSON schema of the output instead of the help text.
func newJSONTopic(in *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{Use: "json", Short: "Output of --json, and the columns in a pipe"}
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if in.JSON {
			_, _ = cmd.OutOrStdout().Write(say.Schema)
			return
		}
		cmd.Root().HelpFunc()(cmd, args)
	})
	return cmd
}
