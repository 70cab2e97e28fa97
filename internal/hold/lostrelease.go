package hold

import (
	"context"
	"slices"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// What a record says of a release whose reply was lost, or whose condition failed.

// isReleasedBy reports whether a record shows that attempt a has released the grant.
func (f *releaser) isReleasedBy(a attempt, item protocol.Item) bool {
	r, err := f.h.Decode(item)
	return err == nil && r.Released && r.Version == a.Version
}

// isFreed reports whether a record that does not show our grant means that an
// attempt has freed it.
func (f *releaser) isFreed(item protocol.Item, sent []attempt, deletes bool) bool {
	// Nobody else could be granted the key while the first write was under
	// way, unless that write was applied.
	silent := f.tried.Silent()
	applied := silent && f.inTime && !f.h.lease.Orphaned()
	if item == nil {
		return applied || silent && deletes
	}
	r, err := f.h.Decode(item)
	if err != nil {
		return applied
	}
	if _, ours := attempts.Find(sent, r.Version); ours && r.Released {
		return true
	}
	// If an earlier release failed while the lock was trusted, anyone may have taken
	// the key since: another grant in the record then means freed, not lost.
	return !slices.Contains(f.named().Grants, r.Grant) && (applied || f.inTime && f.failed && (!r.Released || r.Grant != ""))
}

// lost says what a record that does not show our grant means otherwise; nil: the lock had
// been given up by then.
func (f *releaser) lost(item protocol.Item) error {
	if f.passed {
		return nil
	}
	why := Loss{Key: f.h.key, Token: f.h.token, Reason: Broken, At: f.h.c.Wall().Round(0)}
	if r, err := f.h.Decode(item); err == nil { // else there is none, or a damaged one
		why.seen(r, f.named().Grants...)
	}
	return f.h.c.Errors.Lost(why)
}

// notDone is the error of an operation whose last attempt was neither applied nor
// rejected. Nothing was done, if all attempts have been answered. limit is that of the
// operation.
func (c *Client) notDone(limit context.Context, op string, key protocol.Key, r attempts.Result[attempt], tried *attempts.Sequence[attempt]) error {
	err := attempts.Joined(context.Cause(limit), r.Err)
	if r.Outcome == attempts.Unanswered || len(tried.Versions()) > 0 {
		return c.UnknownOutcome(op, key, err)
	}
	return c.Errors.Failed(op, key, err)
}
