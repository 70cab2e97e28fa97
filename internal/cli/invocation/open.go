package invocation

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/process"
	"github.com/leasehold-go/leasehold/internal/cli/requests"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
)

// Open opens the lock table named by flags and environment. It reports trouble with the
// table's requests until the table is closed.
func (in *Invocation) Open(cmd *cobra.Command, o store.Opening) (*store.Store, error) {
	o.AsItIs, o.Flags = in.completing, arguments.StoreFlags(cmd)
	o.Unnamed, o.Made = in.sayUnnamed, in.sayMade
	if in.Verbose {
		o.Requests = in.logRequests
	}
	o.Known = func(s *store.Store) {
		in.Say.SetTable(s.Table, s.Where())
		s.Trouble = s.Health.Tell(s.Server, in.sayTrouble)
		s.OnClose(s.Trouble.End)
	}
	return store.Open(cmd.Context(), &in.Settings, o)
}

// sayTrouble reports trouble with requests or its end: requests are repeated for a long time,
// and otherwise the command would be silent meanwhile. -q suppresses trouble that may pass.
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

// MakeFile creates the file of a named store unless it exists, and reports that.
func (in *Invocation) MakeFile(path string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return misuse.Errorf("--file %s: %v", path, err)
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

// OnTable is OnStore with a lock client. It counts the consumption of the requests. Any
// failure after a signal is attributed to the signal.
func (in *Invocation) OnTable(cmd *cobra.Command, cfg leasehold.Config, fn func(context.Context, *store.Table) error) error {
	return failure.Answer(in.OnStore(cmd, store.Opening{}, func(ctx context.Context, s *store.Store) error {
		s.DB, s.Meter = requests.Metered(s.DB)
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

// eventRequest is the event of a request, with -v.
const eventRequest = "request"

// logRequests returns a function that logs each request to a store.
func (in *Invocation) logRequests(s *store.Store) func(requests.Request) {
	log := requests.NewLog(s.Proto.Schema())
	return func(r requests.Request) {
		entry := log.Entry(r, s.Server())
		e := say.NewEvent(eventRequest, in.Now())
		e.Operation, e.Attempt, e.RequestID, e.Units, e.TookMs, e.Outcome = entry.Operation, entry.Attempt, entry.ID, entry.Units, say.Millis(entry.Took), entry.Outcome
		switch len(entry.Keys) {
		case 0:
		case 1:
			e.Key, e.SortKey = entry.Keys[0].Partition, entry.Keys[0].Sort
		default:
			for _, k := range entry.Keys {
				e.Keys = append(e.Keys, say.Key{Key: k.Partition, SortKey: k.Sort})
			}
		}
		in.Say.Tell(e, "%s", entry.Line())
	}
}
