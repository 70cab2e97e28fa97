// Package cli is the command leasehold: one file a command, and beside them
// what they share.
//
//	root.go       flags of all commands, and their order in the help
//	settings.go   flag, LEASEHOLD_*, AWS chain, default: where the locks are
//	              (defaultstore.go: where nobody names one); held.go what is
//	              held above this process
//	connect.go    the SDK's client for that, and a lock client on it
//	messages.go   what is said on stderr, in text or JSON
//	errors.go     what an error means: exit code, kind, words
//	waiting.go    who is waited for
//	grantfile.go  where a grant goes, and what must not be overwritten;
//	              grantstore.go the store that a grant is of
//	supervise.go  CMD under the lock; child*.go its process group; watchdog.go
//	              the second process that stops it when trust ends; gate*.go
//	              what CMD waits at until that process knows of it
package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// Env is what surrounds one run of the command.
type Env struct {
	Args           []string // without the command's own name
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Environ        []string // KEY=VALUE, for CMD
	LookupEnv      func(string) (string, bool)
	Now            func() time.Time
	Executable     func() (string, error) // this program, to start itself again
	MachineDir     string                 // of the machine's store, which is used if this is there
	OnEC2          func() bool            // this machine is an instance of EC2
}

// FromOS returns the surroundings of this process.
func FromOS() Env {
	return Env{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Environ: os.Environ(), LookupEnv: os.LookupEnv, Now: time.Now, Executable: thisProgram,
		MachineDir: machineDir(), OnEC2: func() bool { return onEC2("/sys") },
	}
}

func (e Env) get(name string) string {
	v, _ := e.LookupEnv(name)
	return v
}

// app is one run of the command.
type app struct {
	Env
	flags globalFlags
	say   *messages
}

// Main runs the command and returns its exit code.
func Main(env Env) int {
	a := &app{Env: env, say: newMessages(env)}
	root := a.newRoot()
	root.SetArgs(env.Args)
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	cmd, err := root.ExecuteContextC(context.Background())
	a.say.clear()
	if err == nil {
		return 0
	}
	if readerGone(err, env.Stdout) {
		return codeSignal + int(syscall.SIGPIPE) // as if the signal had ended it, and as silent
	}
	// Flags that could not be parsed leave --json unread.
	a.say.configure(a.flags)
	a.report(err)
	var code *exitError
	if errors.As(err, &code) {
		return code.code
	}
	return a.troubleCode(cmd)
}

// readerGone reports whether err is that nobody reads standard output any more,
// as after head(1) has seen enough.
func readerGone(err error, stdout io.Writer) bool {
	f, ok := stdout.(*os.File)
	var in *fs.PathError
	return ok && errors.As(err, &in) && in.Path == f.Name() && errors.Is(in.Err, syscall.EPIPE)
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// width is how many columns the terminal has, 80 where it does not say.
func width(stream any) int {
	if f, ok := stream.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w
		}
	}
	return 80
}

// troubleCode is the exit code of cmd for trouble of leasehold's own: what
// runs a CMD leaves the small codes to it, as timeout(1) does.
func (a *app) troubleCode(cmd *cobra.Command) int {
	runsCommand := cmd.Annotations[runsCMD] == always || cmd.Annotations[runsCMD] == unlessWatch && !cmd.Flags().Changed("watch")
	if cmd.Annotations[runsCMD] == afterDashes {
		for _, arg := range a.Args {
			runsCommand = runsCommand || arg == "--"
		}
	}
	if runsCommand {
		return codeNotRun
	}
	return codeTrouble
}

// Annotation of commands that run a CMD: always, only if one is given, or
// unless they watch.
const (
	runsCMD     = "runs CMD"
	always      = "always"
	afterDashes = "after --"
	unlessWatch = "unless --watch"
)
