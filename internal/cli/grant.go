package cli

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-go/leasehold"
)

// standardStream stands for standard input and output.
const standardStream = "-"

func grantFlag(fl *pflag.FlagSet, path *string, usage string) {
	fl.StringVarP(path, "grant", "f", standardStream, usage)
}

// readGrant reads a grant from a file or from standard input.
func (a *app) readGrant(path string) (placedGrant, error) {
	var g placedGrant
	var b []byte
	var err error
	from := path
	if path == standardStream {
		from = "standard input"
		b, err = io.ReadAll(io.LimitReader(a.Stdin, longestGrant))
	} else {
		b, err = readLimited(path)
	}
	if err != nil {
		return g, usagef("the grant of leasehold acquire is needed: %v", err)
	}
	g, ok := parseGrant(b)
	if !ok {
		return g, usagef("%s is not a grant as leasehold acquire writes it", from)
	}
	return g, nil
}

// grantOfFile reads the grant that renew and release are about.
func (a *app) grantOfFile(cmd *cobra.Command, path string) (placedGrant, error) {
	if path == standardStream && isTerminal(a.Stdin) {
		return placedGrant{}, usageOf(cmd, "name the FILE with the grant: -f FILE")
	}
	return a.readGrant(path)
}

// resumed is what renew and release share: a grant taken up again. ctx ends
// with a signal.
type resumed struct {
	store *store
	lock  *leasehold.Lock
	ctx   context.Context
	close func()
}

// mostRenewals is how many renewals of others are followed until a grant that
// is to be released is caught.
const mostRenewals = 5

// resume takes up a grant. One that is lost is an answer, not trouble. With
// data it refuses a layout that cannot keep any, before the grant is taken up:
// that can be done once.
//
// Whoever is to release a grant may have it as it was before a renewal, say if
// the output of that was lost: by grant, token and owner it is the same. To
// renew that would let two processes believe in one grant.
func (a *app) resume(cmd *cobra.Command, g placedGrant, toRelease, data bool, opts ...leasehold.RenewOption) (*resumed, error) {
	if err := a.goWhere(g); err != nil {
		return nil, err
	}
	s, err := a.open(cmd, g.Table)
	if err != nil {
		return nil, err
	}
	if s.table != g.Table {
		s.close()
		return nil, usagef("the grant is of table %s, not %s", g.Table, s.table)
	}
	if data && !s.layout.Capabilities().Data {
		s.close()
		return nil, &leasehold.UnsupportedError{Layout: s.layout.Name(), Feature: "data"}
	}
	locks, err := s.locks(leasehold.Config{Owner: withoutID(g.Owner)})
	if err != nil {
		s.close()
		return nil, err
	}
	signals := catchSignals()
	ctx, cancel := signals.bind(cmd.Context())
	r := &resumed{store: s, ctx: ctx, close: func() {
		cancel()
		signals.release()
		closeLocks(locks)
		s.close()
	}}
	for n := 0; ; n++ {
		r.lock, err = locks.Resume(ctx, g.Grant, opts...)
		since := renewedSince(g.Grant, err)
		if since == nil {
			break
		}
		if !toRelease || n == mostRenewals {
			err = &renewedError{err}
			break
		}
		g.Versions = []string{since.Version}
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// renewedSince returns the record of a grant that was not taken up because it
// was renewed after it was written to its file, nil for any other outcome.
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

// renewedError is a grant that was renewed since it was written to its file.
type renewedError struct{ err error }

func (e *renewedError) Error() string {
	return trim(e.err) + ": use the file that the latest renewal wrote; " +
		"where that is lost, this one still does for leasehold release"
}

func (e *renewedError) Unwrap() error { return e.err }
