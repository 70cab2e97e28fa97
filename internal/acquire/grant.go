package acquire

import (
	"fmt"
	"slices"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// take sends one grant for the key, and returns a Holding if DynamoDB has applied the grant.
// If the record shows that a release has handed the key to this waiter, take sends nothing and
// returns a Holding. If take returns neither a Holding nor an error, another client holds the
// key.
func (w *waiter) take() (Holding, error) {
	if w.seen != nil {
		if a, ok := w.handed(*w.seen); ok {
			return w.newHolding(a, *w.seen), nil
		}
	}
	move, _ := w.move(0)
	takeOver := move == decide.TakeOver
	if takeOver {
		lives, err := w.endSession()
		if err != nil {
			return nil, err
		}
		if lives {
			w.slowDown()
			return nil, nil
		}
	}
	session, err := w.c.keeper.Session(w.ctx)
	if err != nil {
		return nil, err
	}
	w.requests++
	w.asked = w.c.Now()
	r := w.tried.Try(w.values, w.c.Requests, attempts.Operation[GrantAttempt]{
		Key:    w.want.Key,
		Next:   func() (GrantAttempt, *protocol.Write) { return w.grant(session, takeOver) },
		Within: w.want.Within(session),
		Shows:  w.shows,
	})
	// The condition of a grant names at most MostUnanswered earlier attempts. Older attempts
	// become attempts in doubt: if a record later shows one of them as the current grant, this
	// client takes the key over at once.
	w.c.leaveInDoubt(w.want.Key, attempts.Versions(w.tried.Keep(attempts.MostUnanswered)))
	w.unclear = false
	switch r.Outcome {
	case attempts.Applied:
		record, err := w.c.Decode(w.want.Key, r.Item)
		if err != nil {
			// DynamoDB has applied the grant, but the record still contains a damaged part that the
			// grant did not replace.
			w.tried.Add(r.Attempt)
			return nil, err
		}
		return w.newHolding(r.Attempt, record), nil
	case attempts.Rejected:
		if err := w.rejected(r); err != nil {
			return nil, err
		}
		if w.view.Free {
			// The key is free now. This error makes the loop in acquire send another grant.
			return nil, r.Failure()
		}
		w.succeeded(granting)
		if takeOver {
			w.slowDown()
		}
		return nil, nil
	}
	w.unclear = len(w.tried.Versions()) > 0
	return nil, r.Failure()
}

// endSession marks the holder's session as dead, so that the waiter can take the key over.
// If the session turns out to be alive, endSession returns true, and marks nothing. If the
// holder has no session, endSession does nothing and returns false.
func (w *waiter) endSession() (lives bool, err error) {
	session := w.holdersSession()
	if session == nil {
		return false, nil
	}
	dead, err := session.MarkDead(w.ctx)
	w.requests++
	if dead || err != nil {
		return false, err
	}
	return true, w.lookAtSession() // the session was renewed meanwhile, so read its row again to find out when it will be dead
}

// grant returns the next attempt and its write. If takeOver is true, the write replaces the grant
// in the record. If that grant is an earlier attempt of this client that took the key over from a
// dead holder, the new attempt counts as a takeover from that dead holder.
func (w *waiter) grant(session Session, takeOver bool) (GrantAttempt, *protocol.Write) {
	a := w.c.Attempt(w.want.Timing.Lease, session)
	g := w.c.Grant(w.want, a)
	g.Takeable = w.tried.Versions()
	g.Entry = w.queueEntry()
	switch {
	case takeOver && w.view.Ours:
		earlier, _ := w.tried.Find(w.seen.Version)
		a.Dead = earlier.Dead
		g.Takeable = append(g.Takeable, w.seen.Version)
	case takeOver:
		a.Dead, g.Dead = w.seen, w.seen
		if w.seen.Handed {
			g.NoQueueUntil = decide.SuspendedUntil(w.c.Wall(), w.c.Lease)
		}
	}
	return a, w.c.Proto.Grant(g)
}

// shows returns the attempt of this waiter that the record shows as the current grant. It returns
// false if there is no such attempt, or if less than half of its trusted time is left. The waiter
// may not know yet that DynamoDB has applied the attempt. Perhaps no reply came. Or the network
// delivered the request twice, and only the rejection of the second copy came back.
func (w *waiter) shows(item protocol.Item, sent []GrantAttempt) (GrantAttempt, bool) {
	r, err := w.c.Decode(w.want.Key, item) // if item is nil, Decode returns an error and an empty record
	if a, ok := w.handed(r); ok && err == nil && !r.Released {
		return a, true
	}
	a, ok := attempts.Find(sent, r.Version)
	return a, ok && err == nil && !r.Released && a.isWorthHaving(w.want.Timing, w.c.Now())
}

// rejected evaluates the record that DynamoDB returned when it rejected a grant.
func (w *waiter) rejected(r attempts.Result[GrantAttempt]) error {
	if r.Item == nil && w.want.IfExists {
		w.missing = true
		return fmt.Errorf("%w: IfExists acquires only a record that is there", w.c.Errors.Missing(w.want.Key))
	}
	if err := w.observe(r.Item); err != nil {
		return err
	}
	if w.seen != nil && w.seen.Version == r.Attempt.Version {
		w.view.Ours = true
	}
	return nil
}

// slowDown delays the next grant of this waiter, so that the waiter sends at most one takeover per
// PollMin. It is called after a takeover that failed because the holder had renewed its lock or its
// session. It has an effect only if the holder's lease is shorter than PollMin.
func (w *waiter) slowDown() {
	if least := durations.Sum(w.c.Now().Mono, w.c.PollMin); w.view.Dead < least {
		w.from = max(w.from, least)
	}
}

// newHolding returns a new Holding for the grant of attempt a. The parameter r is the record that
// shows the grant.
func (w *waiter) newHolding(a GrantAttempt, r protocol.Record) Holding {
	w.tried.Drop(a.Version)
	entry := a.Version
	// If the waiter wrote the grant itself, the same write has also removed the waiter's entry
	// from the queue.
	if at := w.queueEntry(); at != nil && !a.Handed {
		entry = at.Of.Grant
	}
	w.forget(entry)
	w.c.Observer.Records.Forget(w.want.Key)
	return w.want.Hold(w.values, Grant{GrantAttempt: a, Record: r, AwaitsRest: w.isAll()})
}

// leaveTried adds the waiter's unanswered attempts to the client's attempts in doubt. DynamoDB may
// still apply these attempts once the key is free again. The waiter's queue entries count as such
// attempts. leaveTried returns only the attempts that were sent as grants, and not the queue
// entries.
func (w *waiter) leaveTried() []GrantAttempt {
	tried := w.tried.Unanswered()
	w.c.leaveInDoubt(w.want.Key, attempts.Versions(append(slices.Clip(tried), w.queue.entries...)))
	return tried
}

// leave ends the wait for the key. If the call is first in the local queue, leave lets the
// next call proceed. It frees the key if an attempt without an answer has acquired it, and
// removes the waiter's entry from the record's queue. leave sends these requests in the
// background, on a goroutine that w.undone counts. That goroutine uses the fields of the waiter, so
// leave must be called last, and once.
func (w *waiter) leave() {
	tried := w.leaveTried()
	if w.ready {
		w.ready = false
		w.c.Local.PassAfter(w.want.Key, nil, durations.Less(w.from, w.c.Now().Mono))
	}
	w.undone.Add(1)
	w.c.Detach(func() {
		defer w.undone.Done()
		w.freeInDoubt(tried)
		w.leaveQueue()
	})
}

// startOver ends the wait for a key that the call has given back, and returns a new waiter for it.
// If the call kept its turn, other goroutines would wait behind it for a key that is free.
func (w *waiter) startOver() *waiter {
	w.leave()
	next := w.newWaiter(w.want)
	next.view.Known, next.view.Free = true, true
	return next
}

// freeInDoubt releases the key if one of the attempts in tried has acquired it. It sends each
// write only once. If DynamoDB applies an attempt after that write, the attempt delays other
// clients for one lease. This client is not delayed, as it knows that none of its callers
// holds the key by that attempt.
func (w *waiter) freeInDoubt(tried []GrantAttempt) {
	for len(tried) > 0 {
		// The attempts may have different owners: each session has its own owner, and a session
		// may have ended between two attempts.
		owner := tried[0].Owner
		n := slices.IndexFunc(tried, func(a GrantAttempt) bool { return a.Owner != owner })
		if n < 0 {
			n = len(tried)
		}
		versions := attempts.Versions(tried[:n])
		tried = tried[n:]
		w.free(protocol.Hold{Key: w.want.Key, Owner: owner, Grants: versions, Versions: versions})
	}
}

// leaveInDoubt records attempts, given by their versions, as in doubt: the client has abandoned
// them before their outcome was known. If a record shows one of these attempts, this client does
// not regard it as a live holder. But if the attempt has a session, other clients regard the key as
// held while this client renews that session. So leaveInDoubt also calls Keeper.CheckSoon, which
// starts checks that release the key.
func (c *Acquirer) leaveInDoubt(key protocol.Key, versions []string) {
	if len(versions) == 0 {
		return
	}
	c.InDoubt.Add(key, versions, c.Now().Mono)
	c.keeper.CheckSoon(key)
}
