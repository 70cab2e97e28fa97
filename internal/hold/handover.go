package hold

import (
	"slices"

	"github.com/leasehold-go/leasehold/internal/acquire"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// hasQueue reports whether the record has a queue that is not suspended. If this queue is not empty,
// the release must hand the key to the queue's head. While a queue is suspended, waiters of other
// clients do not join it, but poll.
func (f *freeing) hasQueue() bool { return f.h.c.keys.HasQueue(f.record) }

// mostHeads is the largest number of waiters to which one release tries to hand the key. The waiter
// at the head of the queue may leave the queue while the write is in flight. The release then tries
// the next head.
const mostHeads = 3

// handToHead hands the key to the head of the record's queue. One write ends this grant, stores the
// changes of the release, and begins the head's grant. handToHead returns false if the release must
// go on, for example because the queue is empty.
func (f *freeing) handToHead() (ended bool) {
	for range mostHeads {
		if !f.hasQueue() || len(f.record.Waiters) == 0 || f.hold.Token >= protocol.MaxToken {
			return false
		}
		// After a rejected hand-over, f.record is the newer record that the reply has shown,
		// unless that record is damaged.
		head := f.record.Waiters[0]
		if f.h.c.keys.InDoubt.Has(f.h.key, head.Grant, f.h.c.Now().Mono) {
			f.remove(head)
			continue
		}
		if f.grantToHead(head) {
			return true
		}
	}
	return false
}

// remove removes the head from the record's queue, because the call of this client that had joined
// the queue no longer waits. For example, the join was delayed until after the call had joined again
// and acquired the key.
func (f *freeing) remove(head protocol.Waiter) {
	f.sent++
	reply := f.h.c.Requests.Write(f.r.ctx, f.h.c.Native.Leave(f.h.key, protocol.QueueEntry{Of: head}), attempts.Limit)
	if record, err := f.h.Decode(reply.Item); err == nil {
		f.record = record
	} else {
		f.record.Waiters = f.record.Waiters[1:] // if the entry is still there, DynamoDB rejects a hand-over to the next
	}
}

// grantToHead sends the write that hands the key to head, until DynamoDB answers. It returns true
// if it has ended the release. It returns false if this client still holds the key, but another
// waiter is now the head, or if the record is damaged.
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
		case err != nil && r.Item != nil: // the record, perhaps its queue, is damaged; a release may still succeed, as its condition is only about the grant
			return false
		case err == nil && !record.Released && slices.Contains(f.named().Grants, record.Grant):
			f.record = record
			return false
		}
	}
	f.end(f.errorOf(r))
	return true
}

// handOver hands the key to the next goroutine in the local queue. If the goroutine leaves
// meanwhile, its grant is handed on in the same way. The result is false if no goroutine can
// receive the key: the grant in f.hold must then be released.
func (f *freeing) handOver() (ended bool) {
	h := f.h
	// If this client has a shared lease, the next lock must be under the session. So a lock without a
	// session, such as a resumed lock, is not handed over.
	if (h.session != nil) != h.c.Shares() {
		return false
	}
	// A hand-over needs a higher token. If no higher token exists, the key is released, and the next
	// call that tries to acquire the key returns an error.
	for f.hold.Token < protocol.MaxToken {
		next := h.c.keys.Local.Successor(h.key, h, f.hasQueue())
		if next == nil {
			return false
		}
		g, err := f.grantTo(next.Want)
		if err != nil && f.r.refused { // perhaps because of data or attributes that the goroutine is to store: a release may still succeed
			h.c.keys.Local.PutBack(next)
			return false
		}
		if err != nil || g.Version == "" {
			repeated := f.repeat(err)
			if !h.c.keys.Local.HandOver(next, nil) {
				h.passTurn()
			}
			f.report(err, repeated)
			f.r.end(err)
			return true
		}
		granted := next.Want.Hold(next.Ctx, g).(*Lock)
		if h.c.keys.Local.HandOver(next, granted) {
			h.c.repeats(h, false)
			f.report(nil, false)
			f.r.end(nil)
			return true
		}
		granted.end(core.ErrReleased)
		// Read the state of the goroutine's lock only after that lock has ended. A lock that has
		// not ended may send renewals, which change the state.
		f.hold, f.record, f.mayHaveStored = granted.asHeld(), granted.Record(), granted.lease.MayHaveStored()
		f.until = h.c.Now().Add(granted.lease.Root().Longest())
		f.tried.Keep(0) // earlier attempts can no longer be applied: the record does not have the versions in their conditions
		f.left = handedOn
		if f.handToHead() { // the record in the reply to the hand-over may have waiters that joined in the meantime
			return true
		}
	}
	return false
}

// grantTo hands the key to a goroutine of this client by a write, which it repeats until DynamoDB
// answers. It returns the zero Grant if the key is free or held by another client, for example
// because an earlier release was applied.
func (f *freeing) grantTo(want *acquire.Want) (acquire.Grant, error) {
	h := f.h
	under := h.attempt.Session // the goroutine's grant is under the same session, if there is one
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
		if err != nil { // part of the record is damaged, so nobody holds the key by this grant: a later release must free it
			f.tried.Add(r.Attempt)
		}
		return acquire.Grant{GrantAttempt: r.Attempt.GrantAttempt, Record: record}, err
	case attempts.Unanswered:
		f.mayHaveStored = f.mayHaveStored || !want.Changes.None()
		f.until = f.until.Add(want.Timing.Lease) // the record may have the goroutine's lease, which may be longer than the lock's
	}
	return acquire.Grant{}, f.errorOf(r)
}
