package hold

import (
	"slices"

	"github.com/leasehold-go/leasehold/internal/acquire"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// hasQueue reports whether the waiters of other clients, if there are any, are in the queue of
// the record. While it is suspended they poll, and the release is as if there were none.
func (f *freeing) hasQueue() bool { return f.h.c.keys.HasQueue(f.record) }

// mostHeads is how many heads a release tries: each may leave while the write is under way.
const mostHeads = 3

// handToHead hands the key to the head of the record's queue, in one write that ends this
// grant, stores what the release is to store, and begins theirs. It ends the release, unless there is no head: then the grant
// must still be handed on here, or released.
//
// The head may trust its grant as soon as it reads the record. So no later attempt of the
// release may replace one that has had no answer, nor may anybody else of this client.
func (f *freeing) handToHead() (ended bool) {
	for range mostHeads {
		head, ok := f.head()
		if !ok {
			return false
		}
		if ended, err := f.grantToHead(head); ended || err != nil {
			f.end(err)
			return true
		}
	}
	return false
}

// head returns the head of the queue that the record showed last, and false if the queue is empty.
func (f *freeing) head() (protocol.Waiter, bool) {
	if !f.hasQueue() || len(f.record.Waiters) == 0 || f.hold.Token >= protocol.MaxToken {
		return protocol.Waiter{}, false
	}
	return f.record.Waiters[0], true
}

// grantToHead sends the hand-over until it is answered. If the grant has not ended, and
// there is no error, another stands first by now.
func (f *freeing) grantToHead(head protocol.Waiter) (ended bool, err error) {
	h := f.h
	g := protocol.Grant{
		Key: h.key, Owner: head.Owner, ID: head.Grant, Lease: decide.HandOverLease(h.lease.Root().Duration()),
		Changes: f.r.terms.Changes,
	}
	r := f.run(attempts.Operation[releaseAttempt]{
		Next: func() (releaseAttempt, *protocol.Write) {
			a := h.c.newAttempt(g.Lease)
			a.toHead, g.Version, g.Now = true, a.Version, h.c.Wall()
			return a, h.c.Native.HandToHead(f.named(), g)
		},
		Shows: func(item protocol.Item, sent []releaseAttempt) (releaseAttempt, bool) {
			record, err := h.Decode(item)
			return sent[len(sent)-1], err == nil && record.Grant == head.Grant
		},
	})
	switch r.Outcome {
	case attempts.Applied:
		h.c.keys.Left.Note(h.key, r.Item, r.Attempt.Sent)
		return true, nil
	case attempts.Rejected:
		record, err := h.Decode(r.Item)
		switch {
		case err != nil && r.Item != nil: // damaged: it may be another head, or another grant
			f.record.Waiters = nil // a release has the condition of the grant alone
			return false, nil
		case err == nil && !record.Released && slices.Contains(f.named().Grants, record.Grant):
			f.record = record
			return false, nil
		case f.isFreed(r.Item, append(f.tried.Unanswered(), r.Attempt), false):
			return true, nil
		}
		return true, f.lost(r.Item) // nil if this grant had ended before, and was handed on
	}
	return false, h.c.notDone(f.r.limit, "release", h.key, r, &f.tried)
}

// handOver hands the key to the next in the local queue, in one write that ends this
// grant and begins theirs. It ends the release, unless there is none: then the grant in
// f.hold must still be released. The next may have left while the write was in flight.
// Then the new grant has no owner here, and is handed on.
func (f *freeing) handOver() (ended bool) {
	h := f.h
	if h.token >= protocol.MaxToken { // the next grant returns that error
		return false
	}
	// A resumed lock has no session. If this client's locks share one, it is not
	// handed over: the next holder's lock must be under the session.
	if (h.session != nil) != h.c.Shares() {
		return false
	}
	for {
		next := h.c.keys.Local.Successor(h.key, h, f.hasQueue())
		if next == nil {
			return false
		}
		g, err := f.grantTo(next.Caller.Want)
		if err != nil || g.Version == "" {
			repeated := f.repeat(err)
			if !h.c.keys.Local.LetSeek(next) {
				h.passTurn()
			}
			f.report(err, repeated)
			f.r.end(err)
			return true
		}
		granted := next.Caller.Want.Hold(next.Caller.Ctx, g).(*Lock)
		if h.c.keys.Local.HandOver(next, granted) {
			f.report(nil, false)
			f.r.end(nil)
			return true
		}
		granted.end(core.ErrReleased)
		// Only now: a renewal may have been sent since the grant.
		f.hold, f.record, f.mayHaveStored = granted.asHeld(), granted.Record(), granted.lease.MayHaveStored()
		f.tried.Keep(0) // they can no longer be applied: the record does not show the versions that they name
		f.left = handedOn
		if f.handToHead() { // the hand-over has shown the waiters that joined meanwhile
			return true
		}
	}
}

// grantTo sends the hand-over until it is answered. It returns the attempt that was
// applied, and its record; neither if the key is free or somebody else's by now, as after
// an earlier release that was applied.
func (f *freeing) grantTo(want *acquire.Want) (acquire.Grant, error) {
	h := f.h
	stores := !want.Changes.None()
	var under acquire.Session
	if h.session != nil {
		under = h.session
	}
	r := f.run(attempts.Operation[releaseAttempt]{
		Within: want.Within(under),
		Next: func() (releaseAttempt, *protocol.Write) {
			a := releaseAttempt{GrantAttempt: h.c.keys.Attempt(want.Timing.Lease, under), handsOver: true}
			return a, h.c.Proto.HandOver(f.named(), h.c.keys.Grant(want, a.GrantAttempt))
		},
		Shows: func(item protocol.Item, sent []releaseAttempt) (releaseAttempt, bool) {
			record, err := h.c.Decode(h.key, item)
			a, ok := attempts.Find(sent, record.Version)
			return a, ok && err == nil && !record.Released && a.Lives(want.Timing, h.c.Now())
		},
	})
	switch r.Outcome {
	case attempts.Applied:
		record, err := h.c.Decode(want.Key, r.Item)
		return acquire.Grant{GrantAttempt: r.Attempt.GrantAttempt, Record: record}, err
	case attempts.Rejected:
		if f.isFreed(r.Item, append(f.tried.Unanswered(), r.Attempt), false) {
			return acquire.Grant{}, nil
		}
		return acquire.Grant{}, f.lost(r.Item)
	}
	f.mayHaveStored = f.mayHaveStored || r.Outcome == attempts.Unanswered && stores
	return acquire.Grant{}, h.c.notDone(f.r.limit, "release", h.key, r, &f.tried)
}
