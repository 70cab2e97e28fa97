// Package invocation is one invocation of the command: its arguments and environment, its
// output, and the functions that all commands share. It opens the table that the flags name
// and reports its name, asks at the terminal, completes keys in a shell, and writes output
// as the flags demand. It knows no command.
//
//	invocation.go the environment, the streams, and the flags of every command
//	open.go       opens the table or local store, and shows each request with -v
//	output.go     output that several commands share, and questions at the terminal
//	keys.go       keys that a shell completes
package invocation

import (
	"io"
	"os"
	"time"

	"github.com/leasehold-go/leasehold/internal/cli/build"
	"github.com/leasehold-go/leasehold/internal/cli/checks"
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

	FileSystem func(path string) (kind string, err error) // describes the file system that contains path
}

// FromOS returns the environment of this process.
func FromOS() Env {
	return Env{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Environ: os.Environ(), LookupEnv: os.LookupEnv, Now: time.Now, Executable: process.ThisProgram,
		MachineDir: store.MachineDir(), OnEC2: store.OnEC2, OnTrial: build.OnTrial,
		FileSystem: checks.FileSystem,
	}
}

// Getenv returns a variable; empty if it is not set.
func (e Env) Getenv(name string) string {
	v, _ := e.LookupEnv(name)
	return v
}

// Invocation is one run of the command.
type Invocation struct {
	Env
	Stdout, Stderr *say.Output // leasehold's own output; Env has the streams, for CMD
	Say            *say.Messages

	// Flags of every command.
	Settings             store.Settings
	JSON, Quiet, Verbose bool

	Metrics    *textfile.Run // run --metrics; nil if not used
	PlaceShown bool          // the command itself shows the store that it uses
	completing bool          // this completes an argument: create nothing
}

// New returns an invocation whose flags have not been parsed.
func New(env Env) *Invocation {
	colours := env.Getenv("NO_COLOR") == ""
	in := &Invocation{Env: env, Stdout: say.To(env.Stdout, colours), Stderr: say.To(env.Stderr, colours)}
	in.Say = say.NewMessages(in.Stderr)
	in.Settings = store.Settings{
		LookupEnv: env.LookupEnv, MachineDir: env.MachineDir, OnEC2: env.OnEC2, OnTrial: env.OnTrial,
		SetByRun: func(table, file string) bool { return holding.SetByRun(env.LookupEnv, table, file) },
	}
	return in
}
