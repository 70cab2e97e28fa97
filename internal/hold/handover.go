package hold

import (
	"slices"

	"github.com/leasehold-go/leasehold/internal/acquire"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// hasQueue reports whether the record's queue is to be served. If the queue is suspended,
// waiters poll, and the key is released as if there were no queue.
func (f *freeing) hasQueue() bool { return f.h.c.keys.HasQueue(f.record) }

// mostHeads is the largest number of heads to which one release tries to hand the key. A
// head may leave the queue while the write is in flight, and then the release tries the
// next head.
const mostHeads = 3

// handToHead hands the key to the head of the record's queue. One write ends this grant,
// stores the changes of the release, and begins the head's grant. The hand-over ends the
// release. If there is no head, handToHead returns false: the key must still be handed to
// another goroutine, or released.
//
// The head may trust its grant as soon as it reads the record. So an attempt without an
// answer must not be replaced by a later attempt of the release, or by any other write of
// this client.
func (f *freeing) handToHead() (ended bool) {
	for range mostHeads {
		if !f.hasQueue() || len(f.record.Waiters) == 0 || f.hold.Token >= protocol.MaxToken {
			return false
		}
		// After a rejected hand-over, f.record is the newer record that the reply has shown.
		if f.grantToHead(f.record.Waiters[0]) {
			return true
		}
	}
	return false
}

// grantToHead sends the hand-over until it is answered, and ends the release. It returns
// false if the record still shows the grant, but another waiter has become the head.
func (f *freeing) grantToHead(head protocol.Waiter) (ended bool) {
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
	case attempts.Rejected:
		record, err := h.Decode(r.Item)
		switch {
		case err != nil && r.Item != nil: // a damaged record may have another head, or show another grant
			f.record.Waiters = nil // forget the queue and release the key: a release checks only the grant
			return false
		case err == nil && !record.Released && slices.Contains(f.named().Grants, record.Grant):
			f.record = record
			return false
		}
	}
	f.end(f.errorOf(r))
	return true
}

// handOver hands the key to the next goroutine in the local queue. One write ends this
// grant and begins the goroutine's grant. The hand-over ends the release. If no goroutine
// waits, handOver returns false: the grant in f.hold must still be released. If the
// goroutine leaves while the write is in flight, handOver hands the new grant over in the
// same way.
func (f *freeing) handOver() (ended bool) {
	h := f.h
	// A hand-over needs a higher token. If there is none, the key is released, so that the
	// next call to acquire it returns the error. A resumed lock, which has no session, is
	// not handed over if this client's locks share one: the next lock must be under it.
	if h.token >= protocol.MaxToken || (h.session != nil) != h.c.Shares() {
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
		// A renewal may have been sent since the grant, so the state is read only after its end.
		f.hold, f.record, f.mayHaveStored = granted.asHeld(), granted.Record(), granted.lease.MayHaveStored()
		f.tried.Keep(0) // earlier attempts can no longer be applied: the record does not show the versions that they name
		f.left = handedOn
		if f.handToHead() { // the reply to the hand-over may show waiters that joined in the meantime
			return true
		}
	}
}

// grantTo sends the hand-over until it is answered. It returns the applied attempt and its
// record. It returns neither if the key is free or held by another client, for example
// because an earlier release was applied.
func (f *freeing) grantTo(want *acquire.Want) (acquire.Grant, error) {
	h := f.h
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
		Shows: h.showsGrant(want.Timing),
	})
	switch r.Outcome {
	case attempts.Applied:
		record, err := h.Decode(r.Item)
		return acquire.Grant{GrantAttempt: r.Attempt.GrantAttempt, Record: record}, err
	case attempts.Unanswered:
		f.mayHaveStored = f.mayHaveStored || !want.Changes.None()
	}
	return acquire.Grant{}, f.errorOf(r)
}
