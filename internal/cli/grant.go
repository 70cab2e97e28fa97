package cli

import (
	"cmp"
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

// resumed is a grant that renew or release has resumed. A signal ends ctx.
type resumed struct {
	store *store.Store
	lock  *leasehold.Lock
	ctx   context.Context
	close func()
}

// maxRenewalsFollowed is how often release tries again if another process renews
// the grant at the same time.
const maxRenewalsFollowed = 5

// resumeGrant resumes a grant. A lost grant is an answer, not a failure. If data
// is to be stored, it first refuses a layout that cannot store any, because a
// grant can be resumed only once.
//
// To release a grant, a version of it from before a renewal is enough: the
// output of the renewal may have been lost, and grant, token and owner are the
// same. To renew it, that is not enough: two processes would then both hold it.
func (a *app) resumeGrant(cmd *cobra.Command, g grants.Grant, toRelease, data bool, opts ...leasehold.RenewOption) (*resumed, error) {
	if err := g.UseStore(&a.flags.Settings); err != nil {
		return nil, err
	}
	s, err := a.open(cmd, store.Opening{Granted: g.Table})
	if err != nil {
		return nil, err
	}
	if s.Table != g.Table {
		s.Close()
		return nil, misuse.Errorf("the grant is from table %s, not %s", g.Table, s.Table)
	}
	here := grants.PlaceOf(cmd.Context(), s)
	if err := g.RefuseOther(here, a.flags.Endpoint); err != nil {
		s.Close()
		return nil, err
	}
	if data && !s.Layout.Capabilities().Data {
		s.Close()
		return nil, &leasehold.UnsupportedError{Layout: s.Layout.Name(), Feature: "data"}
	}
	locks, err := s.Locks(leasehold.Config{Owner: wording.OwnerWithoutID(g.Owner)})
	if err != nil {
		s.Close()
		return nil, err
	}
	signals := process.CatchSignals()
	ctx, cancel := signals.Bind(cmd.Context())
	r := &resumed{store: s, ctx: ctx, close: func() {
		cancel()
		signals.Release()
		store.CloseLocks(locks)
		s.Close()
	}}
	for n := 0; ; n++ {
		r.lock, err = locks.Resume(ctx, g.Grant, opts...)
		since := grants.RenewedSince(g.Grant, err)
		if since == nil {
			break
		}
		if !toRelease || n == maxRenewalsFollowed {
			err = &grants.RenewedError{Err: err}
			break
		}
		g.Versions = []string{since.Version}
	}
	if err != nil {
		r.close()
		return nil, cmp.Or(g.Unproven(here, err), err)
	}
	return r, nil
}
