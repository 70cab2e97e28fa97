// Package cli is the command leasehold: one file for each command, and these
// files that the commands share.
//
//	root.go       global flags, and the order of commands in the help
//	connect.go    opens the table or local store
//	store         chooses it, by flag, LEASEHOLD_*, AWS settings, default
//	say           what is said: the standard streams, messages, events, records
//	failure       an error's exit code, kind and text
//	wording       how values, names and sentences are put into words
//	checks        what doctor and table check ask, and print
//	bench         what bench measures
//	completion.go completes keys and flags in a shell
//	requestlog.go shows every request with -v
//	requests      sees every request: since when none is answered, what they use
//	grants        what is held from one command to the next, and its files
//	textfile      the metrics of run --metrics
//	holding       waits for keys, holds them, runs CMD under them, and releases them
//	process       starts CMD, passes signals on, and stops it before trust ends
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
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/checks"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/holding"
	"github.com/leasehold-go/leasehold/internal/cli/process"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/textfile"
)

// Env is the environment of one run of the command. Tests replace its parts.
type Env struct {
	Args           []string // without the program's name
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Environ        []string // KEY=VALUE, for CMD
	LookupEnv      func(string) (string, bool)
	Now            func() time.Time
	Executable     func() (string, error) // path of this program, to start it again
	MachineDir     string                 // the machine's store is used if this directory exists
	OnEC2          func() bool            // whether this machine is an EC2 instance
	OnTrial        func() bool            // whether leasehold runs from its own source

	FileSystem func(path string) (kind string, free uint64, err error) // that path is on, and its free bytes
}

// FromOS returns the environment of this process.
func FromOS() Env {
	return Env{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Environ: os.Environ(), LookupEnv: os.LookupEnv, Now: time.Now, Executable: process.ThisProgram,
		MachineDir: store.MachineDir(), OnEC2: store.OnEC2, OnTrial: onTrial,
		FileSystem: checks.FileSystem,
	}
}

func (e Env) get(name string) string {
	v, _ := e.LookupEnv(name)
	return v
}

// app is one run of the command.
type app struct {
	Env
	Stdout, Stderr *say.Output // what leasehold says; Env has the streams, for CMD

	flags globalFlags
	say   *say.Messages

	metrics    *textfile.Run // of run --metrics; nil: none
	completing bool          // of an argument: create nothing
	placeShown bool          // the command itself shows which store it uses
}

func newApp(env Env) *app {
	colours := env.get("NO_COLOR") == ""
	a := &app{Env: env, Stdout: say.To(env.Stdout, colours), Stderr: say.To(env.Stderr, colours)}
	a.say = say.NewMessages(a.Stderr)
	a.flags.Settings = store.Settings{
		LookupEnv: env.LookupEnv, MachineDir: env.MachineDir, OnEC2: env.OnEC2, OnTrial: env.OnTrial,
		SetByRun: func(table, file string) bool { return holding.SetByRun(env.LookupEnv, table, file) },
	}
	return a
}

// Main runs the command and returns its exit code.
func Main(env Env) int {
	a := newApp(env)
	root := a.newRoot()
	root.SetArgs(env.Args)
	root.SetIn(env.Stdin)
	out := &keepingErrors{Writer: a.Stdout}
	root.SetOut(out)
	root.SetErr(a.Stderr)
	cmd, err := root.ExecuteContextC(context.Background())
	if err == nil {
		err = out.err
	}
	// If nobody reads standard error any more, the exit code must still say what
	// happened.
	if broken := make(chan os.Signal, 1); !signal.Ignored(syscall.SIGPIPE) {
		signal.Notify(broken, syscall.SIGPIPE)
		defer signal.Stop(broken)
	}
	a.say.Clear()
	code := a.exitCode(cmd, err)
	if failed := a.metrics.Write(a.Now(), code, err); failed != nil {
		a.say.Note("%v", failed)
	}
	a.say.EndEvents(a.Now(), code, err)
	return code
}

// keepingErrors keeps the first error of writing, which cobra does not look at when it
// writes help.
type keepingErrors struct {
	io.Writer
	err error
}

func (w *keepingErrors) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	w.err = cmp.Or(w.err, err)
	return n, err
}

// exitCode says what went wrong, and returns the exit code for it.
func (a *app) exitCode(cmd *cobra.Command, err error) int {
	if err == nil {
		return 0
	}
	if readerGone(err, a.Env.Stdout) {
		return failure.CodeSignal + int(syscall.SIGPIPE) // silent, as if the signal had killed it
	}
	// PersistentPreRunE has not run if the flags could not be parsed, and those after
	// the bad one were not read.
	a.flags.json = a.flags.json || slices.Contains(a.ownArgs(), "--json")
	a.say.Configure(a.flags.quiet, a.flags.json)
	a.report(err)
	var code *failure.ExitError
	if errors.As(err, &code) {
		return code.Code
	}
	return a.troubleCode(cmd)
}

// report writes the error that ended the command. With -q, the exit code alone
// says that KEY is held: that is the answer to -n and -w, not an error.
func (a *app) report(err error) {
	if failure.Silent(err) || a.flags.quiet && errors.Is(err, leasehold.ErrHeld) {
		return
	}
	a.say.Fail(err)
}

// ownArgs returns the arguments that are not CMD's.
func (a *app) ownArgs() []string {
	if i := slices.Index(a.Args, "--"); i >= 0 {
		return a.Args[:i]
	}
	return a.Args
}

// readerGone reports whether err means that the reader of standard output has
// closed it, as head(1) does.
func readerGone(err error, stdout io.Writer) bool {
	f, ok := stdout.(*os.File)
	var in *fs.PathError
	return ok && errors.As(err, &in) && in.Path == f.Name() && errors.Is(in.Err, syscall.EPIPE)
}

// troubleCode is the exit code of cmd if leasehold itself fails. Commands that
// run a CMD leave the small codes to CMD, as timeout(1) does.
func (a *app) troubleCode(cmd *cobra.Command) int {
	runsCommand := cmd.Annotations[runsCMD] == always || cmd.Annotations[runsCMD] == unlessWatch && !cmd.Flags().Changed("watch")
	if cmd.Annotations[runsCMD] == afterDashes {
		for _, arg := range a.Args {
			runsCommand = runsCommand || arg == "--"
		}
	}
	if runsCommand {
		return failure.CodeNotRun
	}
	return failure.CodeTrouble
}

// The annotation runsCMD says when a command runs a CMD: always, only if one
// follows --, or unless --watch is given.
const (
	runsCMD     = "runs CMD"
	always      = "always"
	afterDashes = "after --"
	unlessWatch = "unless --watch"
)
