package cli

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/grants"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/process"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
)

func grantFlag(fl *pflag.FlagSet, path *string, usage string) {
	fl.StringVarP(path, "grant", "f", grants.Standard, usage)
}

// readGrant reads the grant to renew or to release, from a file or from standard
// input.
func (a *app) readGrant(cmd *cobra.Command, path string) (*grants.File, error) {
	if path == grants.Standard && say.IsTerminal(a.Stdin) {
		return nil, usageOf(cmd, "name the FILE with the grant: -f FILE")
	}
	return grants.Read(path, a.Stdin)
}

// requireStdout refuses to write a grant to a standard output that is closed.
func (a *app) requireStdout(path string) error {
	if path == grants.Standard && say.IsClosed(a.Env.Stdout) {
		return misuse.Errorf("standard output is closed, and nobody would have the grant: name a file with --grant")
	}
	return nil
}

// inStoreOf calls fn with a lock client on the store of a grant, and the place of that. A
// signal ends fn's context. If data is to be stored, it first refuses a layout that cannot
// store any, because a grant can be resumed only once.
func (a *app) inStoreOf(cmd *cobra.Command, g grants.Grant, data dataFlag, fn func(context.Context, *leasehold.Client, grants.Place) error) error {
	if err := g.UseStore(&a.flags.Settings); err != nil {
		return err
	}
	s, err := a.open(cmd, store.Opening{Granted: g.Table})
	if err != nil {
		return err
	}
	defer s.Close()
	if s.Table != g.Table {
		return misuse.Errorf("the grant is from table %s, not %s", g.Table, s.Table)
	}
	here := grants.PlaceOf(cmd.Context(), s)
	if err := g.RefuseOther(here, a.flags.Endpoint); err != nil {
		return err
	}
	if data.given && !s.Layout.Capabilities().Data {
		return &leasehold.UnsupportedError{Layout: s.Layout.Name(), Feature: "data"}
	}
	locks, err := s.Locks(leasehold.Config{Owner: wording.OwnerWithoutID(g.Owner)})
	if err != nil {
		return err
	}
	defer store.CloseLocks(locks)
	ctx, done := process.UntilSignal(cmd.Context())
	defer done()
	return fn(ctx, locks, here)
}
