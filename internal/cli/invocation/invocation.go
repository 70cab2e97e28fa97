// Package invocation represents one invocation of the command: its arguments and
// environment, its output, and the functions that all commands share. These functions open
// the table that the flags name and report the table's name. They ask questions at the
// terminal, complete keys in a shell, and write output as the flags demand. The package
// knows nothing of the individual commands.
package invocation

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/build"
	"github.com/leasehold-go/leasehold/internal/cli/checks"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/holding"
	"github.com/leasehold-go/leasehold/internal/cli/process"
	"github.com/leasehold-go/leasehold/internal/cli/requests"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/textfile"
)

// Env is the environment of one run of the command. Tests replace its parts.
type Env struct {
	Args           []string // without the program's name
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Environ        []string // environment of CMD, as KEY=VALUE
	LookupEnv      func(string) (string, bool)
	Now            func() time.Time
	Executable     func() (string, error) // returns the path of this program, which leasehold needs to start itself again
	MachineDir     string                 // directory of the machine's store, which is used if the directory exists
	OnEC2          func() bool            // reports whether this machine is an EC2 instance
	OnTrial        func() bool            // reports whether leasehold runs from its own source

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

// Invocation is one run of the command.
type Invocation struct {
	Env
	Stdout, Stderr *say.Output // leasehold's own output; CMD gets the streams in Env
	Say            *say.Messages

	// Flags of every command.
	Settings             store.Settings
	JSON, Quiet, Verbose bool

	Metrics    textfile.Run // metrics of run --metrics
	PlaceShown bool         // true if the command itself shows which store it uses
	completing bool         // true while the shell completes an argument: nothing may be created
}

// New returns an invocation whose flags have not been parsed.
func New(env Env) *Invocation {
	plain, _ := env.LookupEnv("NO_COLOR")
	in := &Invocation{Env: env, Stdout: say.To(env.Stdout, plain == ""), Stderr: say.To(env.Stderr, plain == "")}
	in.Say = say.NewMessages(in.Stderr)
	in.Settings = store.Settings{
		LookupEnv: env.LookupEnv, MachineDir: env.MachineDir, OnEC2: env.OnEC2, OnTrial: env.OnTrial,
		SetByRun: func(table, file string) bool { return holding.SetByRun(env.LookupEnv, table, file) },
	}
	return in
}

// Open opens the lock table named by flags and environment. It reports trouble with the
// table's requests until the table is closed.
func (in *Invocation) Open(cmd *cobra.Command, o store.Opening) (*store.Store, error) {
	o.AsItIs, o.Flags = in.completing, arguments.StoreFlags(cmd)
	o.Unnamed, o.Made = in.sayUnnamed, in.sayMade
	if in.Verbose {
		o.Requests = in.logRequests
	}
	o.Known = func(s *store.Store) {
		in.Say.SetTable(s.Table, s.Where(), o.Flags)
		s.Trouble = s.Health.Tell(s.Server, in.sayTrouble)
		s.OnClose(s.Trouble.End)
	}
	return store.Open(cmd.Context(), &in.Settings, o)
}

// sayTrouble reports trouble with requests, or that the trouble has ended. Requests are
// repeated for a long time; without a report, the command would be silent during that time.
// -q suppresses reports of trouble that may pass.
func (in *Invocation) sayTrouble(n requests.News) {
	e := say.NewEvent(n.Kind, in.Now())
	e.LastsMs, e.Error, e.Advice = say.Millis(n.Lasts), n.Reason, n.Advice
	if in.Say.Tell(e, "%s", n.Line); n.Lasting && in.Quiet {
		in.Say.Always("%s", n.Line)
	}
}

// sayUnnamed reports which store is used if the user named none. -q suppresses it.
func (in *Invocation) sayUnnamed(p store.Place) {
	if in.Quiet || in.PlaceShown {
		return
	}
	if p.Despite != "" {
		in.Say.Note("no table: using %s, %s (see --table): %s, but a leasehold that runs from its own source is only being tried out",
			in.Settings.Tilde(p.File), p.Scope(), p.Despite)
		return
	}
	in.Say.Note("no table: using %s, %s (see --table)", in.Settings.Tilde(p.File), p.Scope())
}

// MakeFile creates the file of a named store unless the file exists. If it creates the
// file, it tells the user.
func (in *Invocation) MakeFile(path string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return failure.Misusef("--file %s: %v", path, err)
	}
	made, err := in.Settings.MakeFile(abs)
	if made {
		in.sayMade(abs)
	}
	return err
}

func (in *Invocation) sayMade(path string) {
	in.Say.Note("made a new store %s: locks between processes that name this file", path)
}

// OnStore opens the lock table and calls fn. A signal ends fn's context.
func (in *Invocation) OnStore(cmd *cobra.Command, o store.Opening, fn func(context.Context, *store.Store) error) error {
	s, err := in.Open(cmd, o)
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, done := process.UntilSignal(cmd.Context())
	defer done()
	return fn(ctx, s)
}

// OnTable is OnStore with a lock client. It counts the requests and what they consume. If
// fn fails after a signal, OnTable returns the error of the signal.
func (in *Invocation) OnTable(cmd *cobra.Command, cfg leasehold.Config, fn func(context.Context, *store.Table) error) error {
	return failure.Answer(in.OnStore(cmd, store.Opening{}, func(ctx context.Context, s *store.Store) error {
		s.Home, s.Used = requests.Metered(s.Home)
		t, err := s.WithLocks(cfg)
		if err != nil {
			return err
		}
		if err := fn(ctx, t); err != nil {
			return failure.Cause(ctx, err)
		}
		return nil
	}))
}

// eventRequest is the kind of the events that report requests, with -v.
const eventRequest = "request"

// logRequests returns a function that logs each request to a store.
func (in *Invocation) logRequests(s *store.Store) func(requests.Request) {
	log := requests.NewLog(s.Proto.Schema())
	return func(r requests.Request) {
		entry := log.Entry(r, s.Server())
		e := say.NewEvent(eventRequest, in.Now())
		e.Operation, e.Attempt, e.RequestID, e.Units, e.TookMs, e.Outcome = entry.Operation, entry.Attempt, entry.ID, entry.Units, say.Millis(entry.Took), entry.Outcome
		if len(entry.Keys) == 1 {
			e.Key, e.SortKey = entry.Keys[0].Partition, entry.Keys[0].Sort
		} else {
			for _, k := range entry.Keys {
				e.Keys = append(e.Keys, say.Key{Key: k.Partition, SortKey: k.Sort})
			}
		}
		in.Say.Tell(e, "%s", entry.Line())
	}
}

// Limits of the completion of a key, which reads the table while the user waits at the
// prompt.
const (
	completionTime = time.Second
	completionKeys = 200
)

// AnyKey completes the first argument to a key of the table. It leaves the later arguments,
// such as CMD, to the shell.
func (in *Invocation) AnyKey(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return in.key(cmd, args, toComplete, func(leasehold.Record) bool { return true })
}

// HeldKey completes the first argument to a key that is held.
func (in *Invocation) HeldKey(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return in.key(cmd, args, toComplete, func(r leasehold.Record) bool { return !r.Released })
}

// key returns the keys of the table that begin with prefix. It returns at most
// completionKeys, and stops reading after completionTime. If the table cannot be opened, it
// returns no keys. It writes no message, and does not create a store.
func (in *Invocation) key(cmd *cobra.Command, args []string, prefix string, wanted func(leasehold.Record) bool) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	cmd.SetContext(ctx)
	in.Say, in.completing = say.NewMessages(say.To(io.Discard, false)), true
	s, err := in.Open(cmd, store.Opening{})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer s.Close()
	t, err := s.WithLocks(leasehold.Config{})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	keys := map[cobra.Completion]bool{}
	for r, err := range t.Locks.List(ctx, leasehold.ListOptions{Prefix: prefix}) {
		if ctx.Err() != nil || len(keys) == completionKeys {
			break
		}
		if err == nil && wanted(r) {
			keys[r.Key.Partition] = true
		}
	}
	return slices.Sorted(maps.Keys(keys)), cobra.ShellCompDirectiveNoFileComp
}

// Print writes v as JSON with --json, and the text otherwise.
func (in *Invocation) Print(v any, format string, args ...any) error {
	if in.JSON {
		return json.NewEncoder(in.Stdout).Encode(v)
	}
	_, err := fmt.Fprintf(in.Stdout, format, args...)
	return err
}

// SayURL writes the URL of the server. On a terminal it writes a sentence with the URL, in
// a pipe only the URL.
func (in *Invocation) SayURL(url string, asJSON map[string]string, words string, args ...any) error {
	if in.Stdout.Terminal {
		return in.Print(asJSON, words, args...)
	}
	return in.Print(asJSON, "%s\n", url)
}

// CanAsk reports whether the user can be asked at a terminal.
func (in *Invocation) CanAsk() bool { return say.IsTerminal(in.Stdin) && in.Stderr.Terminal }

// Confirm asks a yes-or-no question at the terminal. If the answer is not yes, Confirm
// returns an error that ends the command with the message in no. If ctx ends, Confirm
// returns without an answer.
func (in *Invocation) Confirm(ctx context.Context, question, no string) error {
	fmt.Fprint(in.Stderr, question)
	answers := make(chan string, 1)
	go func() { // the goroutine stays until the process ends, because its read cannot be interrupted
		line, _ := bufio.NewReader(in.Stdin).ReadString('\n')
		answers <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case answer := <-answers:
		if answer != "y" && answer != "yes" {
			return failure.Exit(failure.CodeNo, errors.New(no))
		}
		return nil
	case <-ctx.Done():
		fmt.Fprintln(in.Stderr)
		return context.Cause(ctx)
	}
}
