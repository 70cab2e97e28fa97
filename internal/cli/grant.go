package cli

import (
	"cmp"
	"context"
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/process"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
)

// standardStream stands for standard input and output.
const standardStream = "-"

func grantFlag(fl *pflag.FlagSet, path *string, usage string) {
	fl.StringVarP(path, "grant", "f", standardStream, usage)
}

// readGrant reads the grant to renew or to release, from a file or from standard
// input.
func (a *app) readGrant(cmd *cobra.Command, path string) (*grantFile, error) {
	if path == standardStream && say.IsTerminal(a.Stdin) {
		return nil, usageOf(cmd, "name the FILE with the grant: -f FILE")
	}
	return readGrantFile(path, a.Stdin)
}

// requireStdout refuses to write a grant to a standard output that is closed.
func (a *app) requireStdout(path string) error {
	if path == standardStream && isClosed(a.Env.Stdout) {
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
func (a *app) resumeGrant(cmd *cobra.Command, g placedGrant, toRelease, data bool, opts ...leasehold.RenewOption) (*resumed, error) {
	if err := a.useStoreOf(g); err != nil {
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
	here := placeOf(cmd.Context(), s)
	if err := a.refuseOtherStore(g, here); err != nil {
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
		since := renewedSince(g.Grant, err)
		if since == nil {
			break
		}
		if !toRelease || n == maxRenewalsFollowed {
			err = &renewedError{err}
			break
		}
		g.Versions = []string{since.Version}
	}
	if err != nil {
		r.close()
		return nil, cmp.Or(unproven(g, here, err), err)
	}
	return r, nil
}

// renewedSince returns the record if the grant could not be resumed because it
// was renewed after it had been written to its file. Otherwise it returns nil.
func renewedSince(g leasehold.Grant, err error) *leasehold.Record {
	var lost *leasehold.LostError
	if !errors.As(err, &lost) || lost.By == nil {
		return nil
	}
	r := lost.By
	if r.Released || r.Grant != g.ID || r.Token != g.Token || r.Owner != "" && r.Owner != g.Owner {
		return nil
	}
	return r
}

// renewedError says that a grant was renewed after it had been written to its
// file.
type renewedError struct{ err error }

func (e *renewedError) Error() string {
	return failure.Brief(e.err) + ": use the file that the latest renewal wrote; " +
		"if that is lost, leasehold release still accepts this one"
}

func (e *renewedError) Unwrap() error { return e.err }
