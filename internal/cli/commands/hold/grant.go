package hold

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/grants"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
)

func grantFlag(fl *pflag.FlagSet, path *string, usage string) {
	fl.StringVarP(path, "grant", "f", grants.Standard, usage)
}

// readGrant reads the grant to renew or to release, from a file or from standard
// input.
func (c *command) readGrant(cmd *cobra.Command, path string) (*grants.File, error) {
	if path == grants.Standard && say.IsTerminal(c.Stdin) {
		return nil, misuse.Of(cmd, "name the FILE with the grant: -f FILE")
	}
	return grants.Read(path, c.Stdin)
}

// requireStdout refuses to write a grant to a standard output that is closed.
func (c *command) requireStdout(path string) error {
	if path == grants.Standard && say.IsClosed(c.Env.Stdout) {
		return misuse.Errorf("standard output is closed, and nobody would have the grant: name a file with --grant")
	}
	return nil
}

// inStoreOf calls fn with a lock client on the store of a grant, and the place of that. A
// signal ends fn's context. If data is to be stored, it first refuses a layout that cannot
// store any, because a grant can be resumed only once.
func (c *command) inStoreOf(cmd *cobra.Command, g grants.Grant, data arguments.Data, fn func(context.Context, *leasehold.Client, grants.Place) error) error {
	if err := g.UseStore(&c.Settings); err != nil {
		return err
	}
	return c.OnStore(cmd, store.Opening{Granted: g.Table}, func(ctx context.Context, s *store.Store) error {
		if s.Table != g.Table {
			return misuse.Errorf("the grant is from table %s, not %s", g.Table, s.Table)
		}
		here := grants.PlaceOf(cmd.Context(), s)
		if err := g.RefuseOther(here, c.Settings.Endpoint); err != nil {
			return err
		}
		if data.Given && !s.Layout.Capabilities().Data {
			return &leasehold.UnsupportedError{Layout: s.Layout.Name(), Feature: "data"}
		}
		t, err := s.WithLocks(leasehold.Config{Owner: wording.OwnerWithoutID(g.Owner)})
		if err != nil {
			return err
		}
		return fn(ctx, t.Locks, here)
	})
}
