package acquire

import (
	"fmt"
	"slices"
	"sync"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// take sends one grant. It returns a holding if the key was granted. If it returns neither
// a holding nor an error, another client holds the key.
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
	// If there are too many attempts to name in every condition, the oldest are left in
	// doubt. If one of them later turns out to hold the key, this client takes the key over
	// at once.
	w.c.leaveInDoubt(w.want.Key, attempts.Versions(w.tried.Keep(attempts.MostUnanswered)))
	w.unclear = false
	switch r.Outcome {
	case attempts.Applied:
		record, err := w.c.Decode(w.want.Key, r.Item)
		if err != nil {
			w.tried.Add(r.Attempt) // the grant was applied, but the record still contains a damaged part that the grant did not replace
			return nil, err
		}
		return w.newHolding(r.Attempt, record), nil
	case attempts.Rejected:
		if err := w.rejected(r); err != nil {
			return nil, err
		}
		if w.view.Free {
			return nil, r.Failure() // returns the failed condition as an error, so that the caller tries again: the key is free now
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

// endSession makes sure that the holder's session is dead before one of its locks is taken
// over. It returns true if the session is alive.
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
	return true, w.lookAtSession() // the session was renewed meanwhile, so read when it would be dead now
}

// grant returns the next attempt and the write that it sends. If the record shows an
// earlier attempt of this client, a takeover replaces that attempt. The new attempt then
// counts as a takeover from the same dead holder as the earlier one.
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

// shows returns the attempt of this waiter that a record shows, if at least half of its
// trust is left. Such an attempt had no answer, or its request arrived twice.
func (w *waiter) shows(item protocol.Item, sent []GrantAttempt) (GrantAttempt, bool) {
	if item == nil {
		return GrantAttempt{}, false
	}
	r, err := w.c.Decode(w.want.Key, item)
	if a, ok := w.handed(r); ok && err == nil && !r.Released {
		return a, true
	}
	a, ok := attempts.Find(sent, r.Version)
	return a, ok && err == nil && !r.Released && a.isWorthHaving(w.want.Timing, w.c.Now())
}

// rejected records what the rejection of a grant has shown about the record.
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

// slowDown limits takeovers to one each PollMin. It is called when a takeover was rejected
// because the holder had renewed. It has an effect only if the holder's lease is very
// short.
func (w *waiter) slowDown() {
	if least := durations.Sum(w.c.Now().Mono, w.c.PollMin); w.view.Dead < least {
		w.from = max(w.from, least)
	}
}

// newHolding begins to hold a grant.
func (w *waiter) newHolding(a GrantAttempt, r protocol.Record) Holding {
	w.tried.Drop(a.Version)
	entry := a.Version
	if at := w.queueEntry(); at != nil && !a.Handed { // the grant was this waiter's own write, which has also removed its entry
		entry = at.Of.Grant
	}
	w.forget(entry)
	w.c.Observer.Records.Forget(w.want.Key)
	return w.want.Hold(w.values, Grant{GrantAttempt: a, Record: r})
}

// leaveTried moves the attempts without an answer to the client's attempts in doubt, as
// they may still be applied once the key is free again. It returns only the attempts that
// were sent as grants, and not the entries in the key's queue.
func (w *waiter) leaveTried() []GrantAttempt {
	tried := w.tried.Unanswered()
	w.c.leaveInDoubt(w.want.Key, attempts.Versions(append(slices.Clip(tried), w.queue.entries...)))
	return tried
}

// leave gives up the key. It frees the key if an attempt without an answer has acquired it,
// and passes the turn to the next call in the local queue. leave sends its requests in the
// background; undone counts them until they have ended.
func (w *waiter) leave(undone *sync.WaitGroup) {
	tried := w.leaveTried()
	if w.ready {
		w.ready = false
		w.c.Local.PassAfter(w.want.Key, nil, durations.Less(w.from, w.c.Now().Mono))
	}
	undone.Add(1)
	w.c.Detach(func() {
		defer undone.Done()
		w.freeInDoubt(tried)
		w.leaveQueue()
	})
}

// freeInDoubt frees the key if one of the attempts holds it. It tries only once. If an
// attempt is applied after that, it delays other clients for one lease. This client is not
// delayed, as it knows that no caller holds the key by this attempt.
func (w *waiter) freeInDoubt(tried []GrantAttempt) {
	for len(tried) > 0 {
		owner := tried[0].Owner // the attempts may have different owners, as a session may have ended between them
		n := slices.IndexFunc(tried, func(a GrantAttempt) bool { return a.Owner != owner })
		if n < 0 {
			n = len(tried)
		}
		versions := attempts.Versions(tried[:n])
		tried = tried[n:]
		w.free(protocol.Hold{Key: w.want.Key, Owner: owner, Grants: versions, Versions: versions})
	}
}

// free frees the key if its record shows the hold. It sends the write once, without a retry.
func (w *waiter) free(hold protocol.Hold) {
	w.c.Requests.Write(w.values, w.c.Freeing(w.c.Proto, hold, w.want.Delete), attempts.Limit)
}

// leaveInDoubt records attempts for a key that were given up before their outcome was
// known. So this client does not take such an attempt for a live holder. leaveInDoubt also
// makes sure that attempts under this client's session do not block the key for others: see
// Keeper.CheckSoon.
func (c *Acquirer) leaveInDoubt(key protocol.Key, versions []string) {
	if len(versions) == 0 {
		return
	}
	c.InDoubt.Add(key, versions, c.Now().Mono)
	c.keeper.CheckSoon(key)
}
