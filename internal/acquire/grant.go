package acquire

import (
	"fmt"
	"slices"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// take sends one grant, and returns a Holding if DynamoDB has applied the grant. It sends nothing
// if a release has handed the key to this waiter. If it returns neither a Holding nor an error, the
// key is held.
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
	w.requests.Add(1)
	w.asked = w.c.Now()
	r := w.tried.Try(w.values, w.c.Requests, attempts.Operation[GrantAttempt]{
		Key:    w.want.Key,
		Next:   func() (GrantAttempt, *protocol.Write) { return w.grant(session, takeOver) },
		Within: w.want.Within(session),
		Shows:  w.shows,
	})
	// The condition of a grant names at most MostUnanswered earlier attempts. Older attempts become
	// attempts in doubt (see IsInDoubt).
	w.leaveInDoubt(attempts.Versions(w.tried.Keep(attempts.MostUnanswered)))
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
	dead, err := session.MarkDead(w.ctx, &w.requests)
	if dead || err != nil {
		return false, err
	}
	return true, w.lookAtSession() // the session was renewed meanwhile, so read its row again to find out when it will be dead
}

// grant returns the next attempt and its write. If takeOver is true, the write replaces the grant
// in the record. If that grant is an earlier takeover by this waiter, the new attempt counts as a
// takeover from the same dead holder.
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

// shows returns the waiter's attempt that the record shows as the current grant. It returns false
// if there is none, or if less than half of its trusted time is left. The client may not know that
// the attempt was applied: its reply was lost, or was the rejection of a second copy.
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

// slowDown is called after a takeover that failed because the holder had renewed its lock or
// session. It limits the waiter to one takeover per PollMin, even if the holder's lease is shorter.
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

// leaveTried adds the waiter's unanswered grants and its queue entries to the client's attempts in
// doubt. DynamoDB may still apply them once the key is free again. The result contains only the
// grants.
func (w *waiter) leaveTried() []GrantAttempt {
	tried := w.tried.Unanswered()
	w.leaveInDoubt(attempts.Versions(append(slices.Clip(tried), w.queue.entries...)))
	return tried
}

// leave ends the wait for the key and passes on the local turn. In the background, it frees the key
// if an unanswered attempt has acquired it, and removes the waiter's queue entry. It must be called
// last, and once, because the background goroutine still uses the waiter.
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

// freeInDoubt releases the key if one of the attempts in tried has acquired it. It sends each write
// only once. An attempt that DynamoDB applies after that write delays other clients for one lease,
// but does not delay this client.
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

// leaveInDoubt records the attempts with the given versions as in doubt (see IsInDoubt). It also
// calls Keeper.CheckSoon.
func (w *waiter) leaveInDoubt(versions []string) {
	if len(versions) == 0 {
		return
	}
	lasts := w.want.Timing.Lease
	if w.c.keeper.Shares() {
		lasts = 0 // the checks release the key
	}
	w.c.InDoubt.Add(w.want.Key, versions, w.c.Now().Mono, lasts)
	w.c.keeper.CheckSoon(w.want.Key)
}
