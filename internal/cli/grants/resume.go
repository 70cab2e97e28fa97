package grants

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
)

// Resume renews the grant, in the store that here is. A version of it from before another
// renewal is refused: two processes would hold it.
func (g Grant) Resume(ctx context.Context, locks *leasehold.Client, here Place, opts ...leasehold.RenewOption) (*leasehold.Lock, error) {
	lock, err := locks.Resume(ctx, g.Grant, opts...)
	return lock, g.explain(here, err)
}

// maxRenewalsFollowed is how often ResumeToRelease tries again if another process renews
// the grant at the same time.
const maxRenewalsFollowed = 5

// ResumeToRelease is Resume for a grant that is to be released. A version of it from before
// a renewal is enough: the output of the renewal may have been lost, and grant, token and
// owner are the same. Its lease, which the release ends, is at least least: the release must
// not be refused for it.
func (g Grant) ResumeToRelease(ctx context.Context, locks *leasehold.Client, here Place, least time.Duration) (*leasehold.Lock, error) {
	if g.Lease != 0 { // else the grant is damaged
		g.Lease = max(g.Lease, least)
	}
	lock, err := locks.Resume(ctx, g.Grant)
	for range maxRenewalsFollowed {
		since := g.renewedSince(err)
		if since == nil {
			break
		}
		g.Versions = []string{since.Version}
		lock, err = locks.Resume(ctx, g.Grant)
	}
	return lock, g.explain(here, err)
}

// explain says what the loss of a grant may mean.
func (g Grant) explain(here Place, err error) error {
	if g.renewedSince(err) != nil {
		err = &renewedError{err}
	}
	return cmp.Or(g.unproven(here, err), err)
}

// Ended reports whether a grant is of no more use: it was released, or is lost.
func Ended(err error) bool {
	var renewed *renewedError
	var elsewhere *unprovenError
	return err == nil || errors.Is(err, leasehold.ErrLost) && !errors.As(err, &renewed) && !errors.As(err, &elsewhere)
}

// renewedSince returns the record if the grant could not be resumed because it
// was renewed after it had been written to its file. Otherwise it returns nil.
func (g Grant) renewedSince(err error) *leasehold.Record {
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

// unproven says that a grant which seems lost may have been made in another store than
// this one. nil: it was made in this one.
func (g Grant) unproven(here Place, err error) error {
	switch {
	case !errors.Is(err, leasehold.ErrLost):
		return nil
	case g.At == Place{}:
		return &unprovenError{err, "the grant does not say in which store its table " + g.Table + " is, and this is " + here.String()}
	case g.At.EndpointURL != here.EndpointURL:
		return misuse.Errorf("the grant is from table %s in %s, and %s does not have it: if the server has not moved, leave out --endpoint-url",
			g.Table, g.At, here.EndpointURL)
	}
	return nil
}

// unprovenError is the loss of a grant that may be held in another store.
type unprovenError struct {
	err  error
	says string
}

func (e *unprovenError) Error() string { return failure.Brief(e.err) + ": " + e.says }

func (e *unprovenError) Unwrap() error { return e.err }
