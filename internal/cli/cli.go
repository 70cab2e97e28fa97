// Package cli implements the command leasehold: the tree of its commands, their help and
// their exit codes.
//
//	cli.go        runs a command, and turns its error into an exit code
//	root.go       flags of every command, their errors, and the order of commands in the help;
//	              the command help (topics: its texts)
//	completion.go completes keys and flags in a shell
//
// The commands themselves are in packages below commands, in the groups of the help. The
// other packages below are shared by several commands; read package invocation first.
//
// The tests here run the command as users do. Tests of a single package's rules are in that
// package.
package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/invocation"
)

// Main runs the command and returns its exit code.
func Main(env invocation.Env) int {
	in := invocation.New(env)
	root := newRoot(in)
	root.SetArgs(env.Args)
	root.SetIn(env.Stdin)
	out := &keepingErrors{Writer: in.Stdout}
	root.SetOut(out)
	root.SetErr(in.Stderr)
	cmd, err := root.ExecuteContextC(context.Background())
	if err == nil {
		err = out.err
	}
	// If no process reads standard error, the exit code must still be correct.
	if broken := make(chan os.Signal, 1); !signal.Ignored(syscall.SIGPIPE) {
		signal.Notify(broken, syscall.SIGPIPE)
		defer signal.Stop(broken)
	}
	in.Say.Clear()
	code := exitCode(in, cmd, err)
	if failed := in.Metrics.Write(in.Now(), code, err); failed != nil {
		in.Say.Note("%v", failed)
	}
	in.Say.EndEvents(in.Now(), code, err)
	return code
}

// keepingErrors keeps the first write error, since cobra ignores errors when it writes
// help.
type keepingErrors struct {
	io.Writer
	err error
}

func (w *keepingErrors) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	w.err = cmp.Or(w.err, err)
	return n, err
}

// exitCode reports the error and returns its exit code.
func exitCode(in *invocation.Invocation, cmd *cobra.Command, err error) int {
	if err == nil {
		return 0
	}
	if readerGone(err, in.Env.Stdout) {
		return failure.CodeSignal + int(syscall.SIGPIPE) // silent, as if the signal had killed it
	}
	// PersistentPreRunE has not run if the flags could not be parsed, and flags after the
	// invalid one were not read.
	in.JSON = in.JSON || slices.Contains(ownArgs(in.Args), "--json")
	in.Say.Configure(in.Quiet, in.JSON)
	// With -q only the exit code reports that KEY is held: that is an answer to -n and -w
	// rather than an error.
	if isAnswer := in.Quiet && errors.Is(err, leasehold.ErrHeld); !failure.Silent(err) && !isAnswer {
		in.Say.Fail(err)
	}
	var code *failure.ExitError
	if errors.As(err, &code) {
		return code.Code
	}
	return troubleCode(cmd, in.Args)
}

// ownArgs returns the arguments that are not CMD's.
func ownArgs(args []string) []string {
	if i := slices.Index(args, "--"); i >= 0 {
		return args[:i]
	}
	return args
}

// readerGone reports whether err means that the reader of standard output has
// closed it, as head(1) does.
func readerGone(err error, stdout io.Writer) bool {
	f, ok := stdout.(*os.File)
	var at *fs.PathError
	return ok && errors.As(err, &at) && at.Path == f.Name() && errors.Is(at.Err, syscall.EPIPE)
}

// troubleCode returns the exit code of cmd if leasehold itself fails. Commands that run a
// CMD leave the small codes to CMD, as timeout(1) does.
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

// Command returns the tree of commands, for callers that print its manual or list its
// flags.
func Command() *cobra.Command {
	env := invocation.Env{Stdout: io.Discard, Stderr: io.Discard, LookupEnv: func(string) (string, bool) { return "", false }}
	root := newRoot(invocation.New(env))
	root.InitDefaultHelpCmd()
	return root
}
