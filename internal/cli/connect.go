package cli

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/process"
	"github.com/leasehold-go/leasehold/internal/cli/requests"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/layout"
)

// settings are those of the lock table, for cmd.
func (a *app) settings(cmd *cobra.Command) *store.Settings {
	a.flags.LayoutGiven = cmd.Flags().Changed("layout")
	return &a.flags.Settings
}

// chooseProtocol returns the layout that flags and environment name, and its
// protocol.
func (a *app) chooseProtocol(cmd *cobra.Command) (layout.Layout, protocol.Protocol, error) {
	l, err := a.settings(cmd).Layout()
	if err != nil {
		return nil, nil, err
	}
	proto, err := records.Of(l)
	return l, proto, err
}

// open opens the lock table that flags and environment name, and reports trouble with
// its requests until it is closed.
func (a *app) open(cmd *cobra.Command, o store.Opening) (*store.Store, error) {
	o.AsItIs, o.Flags = a.completing, storeFlags(cmd)
	o.Guessed, o.Made = a.sayUnnamed, a.sayMade
	if a.flags.verbose {
		o.Requests = a.logRequests
	}
	o.Known = func(s *store.Store) {
		a.say.SetTable(s.Table, s.Where())
		s.Trouble = s.Health.Tell(s.Server, a.sayTrouble)
		s.OnClose(s.Trouble.End)
	}
	return store.Open(cmd.Context(), a.settings(cmd), o)
}

// sayTrouble says that requests fail, or that they no longer do: they are tried again for
// a long time, and otherwise the command would be silent meanwhile.
func (a *app) sayTrouble(n requests.News) {
	e := say.NewEvent(n.Kind, a.Now())
	e.LastsMs, e.Error, e.Advice = say.Millis(n.Lasts), n.Reason, n.Advice
	a.say.Tell(e, "%s", n.Line)
}

// sayUnnamed says which store is used, as none was named. At a terminal it is said once,
// and again when the store is made anew: who types the next command has read it. Any
// other reader, such as that of a log, may have read nothing before. -q silences it.
func (a *app) sayUnnamed(p store.Place) {
	dir, _ := a.flags.StateDir() // none: it is said each time
	if a.flags.quiet || a.placeShown || a.completing || a.say.Noticed(dir, p.File) {
		return
	}
	if p.Despite != "" {
		a.say.Note("no table: using %s, %s (see --table): %s, but a leasehold that runs from its own source is only being tried out",
			a.flags.Tilde(p.File), p.Scope(), p.Despite)
		return
	}
	a.say.Note("no table: using %s, %s (see --table)", a.flags.Tilde(p.File), p.Scope())
}

// makeNamed makes the file of a named store unless it exists, and says so.
func (a *app) makeNamed(path string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return misuse.Errorf("--file %s: %v", path, err)
	}
	made, err := a.flags.MakeFile(abs)
	if made {
		a.sayMade(abs)
	}
	return err
}

func (a *app) sayMade(path string) {
	a.say.Note("made a new store %s: locks between processes that name this file", path)
}

// onTable opens the lock table, counts what its requests use, and calls fn with a lock
// client on it. A signal ends fn's context.
func (a *app) onTable(cmd *cobra.Command, cfg leasehold.Config, fn func(ctx context.Context, s *store.Store, locks *leasehold.Client) error) error {
	s, err := a.open(cmd, store.Opening{})
	if err != nil {
		return err
	}
	defer s.Close()
	s.DB, s.Meter = requests.Metered(s.DB)
	locks, err := s.Locks(cfg)
	if err != nil {
		return err
	}
	defer store.CloseLocks(locks)
	ctx, done := process.UntilSignal(cmd.Context())
	defer done()
	return failure.Answer(fn(ctx, s, locks))
}
