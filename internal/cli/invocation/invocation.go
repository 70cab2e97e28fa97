// Package invocation represents one run of the command leasehold: its arguments, its
// environment and its output. Its methods do what all commands need: they open the lock
// table that the flags name, print output as text or JSON, ask questions at the terminal,
// and complete keys in a shell. The package does not depend on any command.
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

// Env contains the arguments, streams and environment variables of one run of leasehold, its clock,
// and facts about the machine. Tests replace its fields.
type Env struct {
	Args           []string // os.Args without the program's name
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Environ        []string // environment that CMD inherits, as KEY=VALUE
	LookupEnv      func(string) (string, bool)
	Now            func() time.Time
	Executable     func() (string, error) // returns the path of the running executable, which leasehold starts again for its child processes
	MachineDir     string                 // directory of the local store that all users of the machine share; used only if it exists
	OnEC2          func() bool            // reports whether this machine is an EC2 instance
	OnTrial        func() bool            // reports whether leasehold was started by go run in its own source

	FileSystem func(path string) (kind string, err error) // returns the kind of the file system that contains path, such as "ext4"
}

// FromOS returns the Env of this process.
func FromOS() Env {
	return Env{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Environ: os.Environ(), LookupEnv: os.LookupEnv, Now: time.Now, Executable: process.ThisProgram,
		MachineDir: store.MachineDir, OnEC2: store.OnEC2, OnTrial: build.OnTrial,
		FileSystem: checks.FileSystem,
	}
}

// Invocation is one run of the command leasehold.
type Invocation struct {
	Env
	Stdout, Stderr *say.Output // output of leasehold itself; CMD inherits the streams in Env instead
	Say            *say.Messages

	// Values of the flags that every command has.
	Settings             store.Settings
	JSON, Quiet, Verbose bool

	Metrics    textfile.Run // metrics that "leasehold run --metrics" writes
	PlaceShown bool         // true if the command itself prints which store it uses, so that sayUnnamed need not
}

// New returns an Invocation for env. Later, Cobra stores the values of the flags in the Invocation.
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

// Open opens the lock table that is given by flags and environment. Until the table is closed,
// leasehold reports to the user if requests have been failing for some time.
func (in *Invocation) Open(cmd *cobra.Command, o store.Opening) (*store.Store, error) {
	o.Flags, o.MakeFile = arguments.StoreFlags(cmd), in.MakeFile
	if in.Verbose {
		o.Requests = in.logRequests
	}
	o.Known = func(s *store.Store) {
		in.sayUnnamed(s.Place)
		in.Say.SetTable(s.Table, s.Where(), o.Flags)
		s.Trouble = s.Health.Tell(s.Server, in.sayTrouble)
		s.OnClose(s.Trouble.End)
	}
	return store.Open(cmd.Context(), &in.Settings, o)
}

// sayTrouble prints the report n: requests have been failing for some time, or succeed again.
// Without such reports, leasehold could retry for a long time in silence. With -q, it prints n only
// if requests will probably fail until the user corrects the cause.
func (in *Invocation) sayTrouble(n requests.News) {
	e := say.NewEvent(n.Kind, in.Now())
	e.LastsMs, e.Error, e.Advice = say.Millis(n.Lasts), n.Reason, n.Advice
	if in.Say.Tell(e, "%s", n.Line); n.Lasting && in.Quiet {
		in.Say.Always("%s", n.Line)
	}
}

// sayUnnamed prints that leasehold uses the store p by default, if the user named none. With
// -q it prints nothing.
func (in *Invocation) sayUnnamed(p store.Place) {
	switch {
	case !p.Unnamed, in.PlaceShown:
	case p.Despite != "":
		in.Say.Note("no table: using %s, %s (see --table): %s, but a leasehold that runs from its own source is only being tried out",
			in.Settings.Tilde(p.File), p.Scope(), p.Despite)
	default:
		in.Say.Note("no table: using %s, %s (see --table)", in.Settings.Tilde(p.File), p.Scope())
	}
}

// MakeFile creates the file of a local store at path, if it does not exist yet, and tells
// the user that it is new.
func (in *Invocation) MakeFile(path string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return failure.Misusef("--file %s: %v", path, err)
	}
	made, err := in.Settings.MakeFile(abs)
	if made {
		in.Say.Note("made a new store %s: locks between processes that name this file", abs)
	}
	return err
}

// OnStore opens the lock table, calls fn, and closes the table. A signal cancels fn's
// context.
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

// OnTable is like OnStore, but also opens a lock client, and counts requests and consumed
// capacity. If fn fails because a signal cancelled its context, OnTable returns the error
// of the signal.
func (in *Invocation) OnTable(cmd *cobra.Command, cfg leasehold.Config, fn func(context.Context, *store.Table) error) error {
	return failure.Answer(in.OnStore(cmd, store.Opening{}, func(ctx context.Context, s *store.Store) error {
		s.Home, s.Used = requests.Metered(s.Home)
		t, err := s.WithLocks(cfg)
		if err != nil {
			return err
		}
		return failure.Cause(ctx, fn(ctx, t))
	}))
}

// logRequests implements -v. The function that it returns reports one request, as an event
// "request" and a line of text. The request went to the server of s.
func (in *Invocation) logRequests(s *store.Store) func(requests.Request) {
	log := requests.NewLog(s.Proto.Schema())
	return func(r requests.Request) {
		entry := log.Entry(r, s.Server())
		e := say.NewEvent("request", in.Now())
		e.Operation, e.Attempt, e.RequestID, e.Units, e.TookMs, e.Outcome = entry.Operation, entry.Attempt, entry.ID, entry.Units, say.Millis(entry.Took), entry.Outcome
		for _, k := range entry.Keys {
			e.Keys = append(e.Keys, say.Key{Key: k.Partition, SortKey: k.Sort})
		}
		if len(e.Keys) == 1 {
			e.Key, e.SortKey, e.Keys = e.Keys[0].Key, e.Keys[0].SortKey, nil
		}
		in.Say.Tell(e, "%s", entry.Line())
	}
}

// Limits of the completion of keys in a shell. The completion reads the table while the
// user waits at the prompt.
const (
	completionTime = time.Second
	completionKeys = 200
)

// AnyKey completes the first argument of a command to a key in the table. For later
// arguments, such as CMD, the shell completes file names.
func (in *Invocation) AnyKey(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return in.key(cmd, args, toComplete, func(leasehold.Record) bool { return true })
}

// HeldKey completes the first argument of a command to a key that is held.
func (in *Invocation) HeldKey(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return in.key(cmd, args, toComplete, func(r leasehold.Record) bool { return !r.Released })
}

// key returns the keys that begin with the prefix, and whose records the function "wanted" accepts.
// It returns at most completionKeys, and reads for at most completionTime. It returns none if the
// table cannot be opened. It prints nothing and does not create a store.
func (in *Invocation) key(cmd *cobra.Command, args []string, prefix string, wanted func(leasehold.Record) bool) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	cmd.SetContext(ctx)
	in.Say = say.NewMessages(say.To(io.Discard, false))
	s, err := in.Open(cmd, store.Opening{AsItIs: true})
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

// Print prints v as JSON if --json is given. Otherwise it prints the formatted text.
func (in *Invocation) Print(v any, format string, args ...any) error {
	if in.JSON {
		return json.NewEncoder(in.Stdout).Encode(v)
	}
	_, err := fmt.Fprintf(in.Stdout, format, args...)
	return err
}

// SayURL prints the URL of a server that leasehold runs. On a terminal it prints a sentence
// that contains the URL, formatted from words and args. In a pipe it prints only the URL,
// and with --json it prints asJSON.
func (in *Invocation) SayURL(url string, asJSON map[string]string, words string, args ...any) error {
	if in.Stdout.Terminal {
		return in.Print(asJSON, words, args...)
	}
	return in.Print(asJSON, "%s\n", url)
}

// CanAsk reports whether standard input and standard error are terminals, so that leasehold
// can ask the user a question.
func (in *Invocation) CanAsk() bool { return say.IsTerminal(in.Stdin) && in.Stderr.Terminal }

// Confirm asks the user a yes-or-no question at the terminal. It returns nil for yes. Otherwise it
// returns an error with exit code 1 whose text is the parameter "no". If ctx is cancelled, Confirm
// returns the cause without waiting for an answer.
func (in *Invocation) Confirm(ctx context.Context, question, no string) error {
	fmt.Fprint(in.Stderr, question)
	answers := make(chan string, 1)
	go func() { // this goroutine may outlive Confirm, because its read cannot be interrupted
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
