package hold

import (
	"context"
	"errors"
	"slices"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// The functions of this file find out the outcome of a release whose reply was lost, or
// whose condition failed. They compare the record that was read afterwards with the
// attempts.

// errorOf returns the error of a release or hand-over with the result r. It returns nil if the write
// has freed the key, or if another write of this client has freed it or may have freed it.
func (f *freeing) errorOf(r attempts.Result[releaseAttempt]) error {
	// The argument true means that DynamoDB has answered this client before: it has applied the
	// grant. So if DynamoDB now denies access, this may be temporary, and the field "refused" stays
	// false.
	f.r.refused = r.Failure().After(true).Cause == decide.Refused
	switch {
	case r.Outcome == attempts.Applied:
		return nil
	case r.Outcome != attempts.Rejected:
		return f.h.c.notDone(f.r.limit, "release", f.h.key, r, len(f.tried.Versions()))
	case f.isFreed(r.Item, append(f.tried.Unanswered(), r.Attempt)):
		return nil
	}
	return f.lost(r.Item)
}

// isFreed reports whether the key became free because of this client's release, and not because the
// lock was lost. The record in item does not show the grant. Each attempt in sent may have freed
// the key.
func (f *freeing) isFreed(item protocol.Item, sent []releaseAttempt) bool {
	// Suppose that a write had no reply, and the first write was sent within the lease. Then the
	// grant has ended because that write was applied, or because the lease has expired since.
	// Neither is a loss: this client had already given the lock up.
	silent := f.tried.Silent()
	applied := silent && f.sentInLease && !f.isSessionLost()
	if f.r.terms.Done {
		return f.hasMark(item)
	}
	if item == nil {
		return applied || silent && f.r.terms.Delete
	}
	r, err := f.h.Decode(item)
	if err != nil {
		return applied
	}
	if _, ours := attempts.Find(sent, r.Version); ours && r.Released {
		return true
	}
	// If an earlier release was sent within the lease and failed, another client may have
	// acquired the key since. In this case, another grant in the record means that the key was
	// freed, not that the lock was lost.
	return !slices.Contains(f.named().Grants, r.Grant) && (applied || f.sentInLease && f.left >= takeable && (!r.Released || r.Grant != ""))
}

// isSessionLost reports whether the lock is under a session that was lost. If this client itself has
// ended the session, as Close does, the session was not lost.
func (f *freeing) isSessionLost() bool {
	_, lost := core.LossOf(f.h.lease.Root().Ended())
	return f.h.session != nil && lost
}

// hasMark reports whether the record in item has the done mark of this lock's work.
func (f *freeing) hasMark(item protocol.Item) bool {
	r, err := f.h.Decode(item)
	return err == nil && r.Done != nil && r.Done.Token == f.h.token
}

// unmarked is called if the record shows neither the grant nor this lock's done mark. It returns an
// error if a write of this client has freed the key without the mark, or may have done so. It
// returns nil if the lock was lost.
func (f *freeing) unmarked(item protocol.Item) error {
	r, err := f.h.Decode(item)
	_, ours := attempts.Find(f.tried.Unanswered(), r.Version)
	switch {
	case f.left == handedOn || err == nil && ours && r.Released:
		return f.h.unmarked("an earlier release has freed the key without it")
	case !f.tried.Silent() && len(f.tried.Unanswered()) == 0:
		return nil
	case item == nil || err != nil || r.Done != nil && r.Done.Token > f.h.token:
		return f.h.maybeUnmarked()
	}
	return nil
}

// unmarkedError is the error of a release after which the key is free, but the done mark may
// be missing.
type unmarkedError struct{ error }

func (e unmarkedError) Unwrap() error { return e.error }

func isUnmarked(err error) bool { return errors.As(err, new(unmarkedError)) }

// unmarked returns the error of a release that did not store the done mark, which would show that
// the work is done. The parameter "why" is the reason.
func (h *Lock) unmarked(why string) error {
	return unmarkedError{h.c.Errorf("release", h.key, "%s, so it was not stored that the work is done", why)}
}

// maybeUnmarked returns the error of a release that may or may not have stored the done
// mark.
func (h *Lock) maybeUnmarked() error {
	return h.c.UnknownOutcome("release", h.key, unmarkedError{errors.New("others have changed the record since, so it may not be stored that the work is done")})
}

// missingMark returns an error if the key was freed without the done mark, or possibly
// without it. It returns nil if the mark is stored.
func (h *Lock) missingMark() error {
	h.mu.Lock()
	f := h.freeing // nil if the key was freed by the write that ended its session
	h.mu.Unlock()
	switch {
	case f != nil && f.marked:
		return nil
	case f != nil && f.left == maybeFreed:
		return h.maybeUnmarked()
	}
	return h.unmarked("the lock had been given up before, by Close or a release without MarkDone")
}

// freed reports whether a release that ended with err has found out that the record no
// longer shows the grant.
func freed(err error) bool { return err == nil || errors.Is(err, core.ErrLost) || isUnmarked(err) }

// lost returns the error of a release after which the record in item does not show the grant. It
// returns nil if another write of this client had already freed the key, or may have done so.
func (f *freeing) lost(item protocol.Item) error {
	if f.r.terms.Done {
		if err := f.unmarked(item); err != nil {
			return err
		}
	} else if f.left >= maybeFreed {
		return nil
	}
	why := core.Loss{Key: f.h.key, Token: f.h.token, Reason: core.Broken, At: f.h.c.Wall().Round(0)}
	if r, err := f.h.Decode(item); err == nil { // an error means that the record is missing or damaged
		why.Seen(r, f.named().Grants...)
	}
	return f.h.c.Errors.Lost(why)
}

// notDone returns the error of an operation whose last attempt failed: it was throttled, for
// example, or had no answer. If all attempts were answered, the operation has changed nothing;
// otherwise its outcome is unknown. The parameter "limit" is the context that limited the
// operation.
func (c *Holds) notDone(limit context.Context, op string, key protocol.Key, r attempts.Result[releaseAttempt], unanswered int) error {
	err := attempts.Joined(attempts.Cause(limit), r.Err)
	if r.Outcome == attempts.Unanswered || unanswered > 0 {
		return c.UnknownOutcome(op, key, err)
	}
	return c.Errors.Failed(op, key, err)
}
