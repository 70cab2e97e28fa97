package seek

import (
	"errors"
	"math"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// plainRecord is the record of a lock with one holder, whose lease may be its
// session's.
type plainRecord struct {
	*waiter
	began      decide.Instant // when the call began
	since      time.Time      // the same, by this client's wall clock
	entries    []Attempt      // this waiter's entries in the record's queue: a release may grant the key by one
	place      int            // position of the last entry, as the record was last shown; -1 if it is not in the queue
	joining    bool           // it was sent, and the record has not been seen since
	joins      decide.Joins   // the joins that may still be sent
	front      time.Time      // the front of the queue, as the record was last shown
	firstFront time.Time      // the one that was seen first
	firstAt    time.Duration  // monotonic: when
	lookedAt   time.Duration  // monotonic: when the last look was sent
	last       time.Duration  // from the look before to that one
	told       int            // the place that the listener knows, from 1
	news       bool           // it does not know the holder

	holdsBack bool // it does not join: its call has joined the shorter queues of other keys
}

func (t *plainRecord) watch()   { t.c.Observer.Records.Watch(t.want.Key) }
func (t *plainRecord) unwatch() { t.c.Observer.Records.Unwatch(t.want.Key) }

func (t *plainRecord) observe(item protocol.Item) error {
	wall, now := t.c.Wall(), t.c.Now()
	t.view.Known, t.view.Free, t.view.Ours = true, true, false
	shown, v, err := t.c.Observer.Observe(t.want.Key, item, now)
	if err != nil {
		return err
	}
	if err := t.noteQueue(item, shown); err != nil {
		return err
	}
	if err := t.isDone(item); err != nil {
		t.seen = shown // for giveUp: the key may have been handed to this waiter
		return err
	}
	if shown == nil {
		t.seen = nil
		return nil
	}
	t.view.Free, t.view.Ours = false, t.isOurs(shown.Version) || t.isEntry(shown.Grant)
	t.view.Grant, t.view.Dead = v.Granted, t.c.Observer.DeadAt(*shown, v, now, wall)
	isNew := liveness.IsNewGrant(t.seen, *shown)
	t.seen = shown
	if t.sessionOf() == nil {
		t.silence(*shown)
	}
	t.holder.Store(shown)
	if isNew && !t.view.Ours {
		t.c.Local.ReportHolder(t.want.Key, shown)
	}
	t.news = t.news || isNew
	return nil
}

// tell reports the holder and the position in the queue to the listener, if either is new. A
// waiter that joins the queue reports both at once.
func (t *plainRecord) tell() {
	if t.seen == nil || t.view.Ours || !t.news && t.place+1 == t.told {
		return
	}
	t.news, t.told = false, t.place+1
	t.c.Listener.Report(t.ctx, core.Event{Kind: core.Waiting, Key: t.want.Key, Holder: t.seen, Position: t.told})
}

// isDone returns the error of a call whose work is done, as a record shows, whoever holds
// it by now. Attempts of this call can no longer be granted the key, as each has the
// condition that the work is not done; but an entry in the queue can.
func (t *plainRecord) isDone(item protocol.Item) error {
	if t.want.Once.None() || item == nil {
		return nil
	}
	shown, err := t.c.Decode(t.want.Key, item)
	if err == nil && t.want.Once.IsDone(shown.Done) {
		err = t.c.Errors.Done(t.want.Key, *shown.Done)
	}
	return err
}

func (t *plainRecord) dead() time.Duration {
	if t.isOwnLock(*t.seen) {
		return math.MaxInt64
	}
	return t.view.Dead
}

// sessionOf returns the session that the holder belongs to. Nil: the holder
// has no session, or is an attempt of our own that no client treats as held.
func (t *plainRecord) sessionOf() *liveness.Session {
	if t.seen == nil || t.view.Ours {
		return nil
	}
	return t.c.Observer.SessionOf(*t.seen)
}

// refresh finds out when the holder will be dead, and takes a place in the record's queue.
func (t *plainRecord) refresh() error {
	defer t.tell()
	if err := t.recall(); err != nil {
		return err
	}
	if err := t.lookAtSession(); err != nil {
		return err
	}
	return t.join()
}

// lookAtSession finds out until when the holder's session keeps it alive. That alone
// counts, even if its own record has not changed for long.
func (t *plainRecord) lookAtSession() error {
	session := t.sessionOf()
	if session == nil {
		return nil
	}
	fresh := t.c.PollMax
	if t.want.NoWait {
		fresh = 0
	}
	row, deadAt, err := session.Look(t.ctx, fresh)
	if err == nil {
		t.requests++
		t.view.Dead = deadAt
		t.silence(row)
	}
	return err
}

// silence notes whether the holder looks dead by r, which it renews. A lock of this
// client does not: it may be held on to through an outage.
func (t *plainRecord) silence(r protocol.Record) {
	if t.met == nil {
		t.met = []string{r.Version}
	}
	t.noteSilent(t.looksDead(r) && !t.isOwnLock(*t.seen))
}

// errSessionLives is why a holder is not taken over: its session has been renewed.
var errSessionLives = errors.New("the holder's session lives")

// prepare makes sure that the session of a holder to be taken over is dead, and begins
// one for this client if its locks share one.
func (t *plainRecord) prepare(takeOver bool) error {
	if takeOver {
		if err := t.endSession(); err != nil {
			return err
		}
	}
	session, err := t.c.keeper.Session(t.ctx)
	t.session = session
	return err
}

// endSession makes sure that the holder's session is dead before one of its locks is
// taken over; errSessionLives if it is not.
func (t *plainRecord) endSession() error {
	session := t.sessionOf()
	if session == nil {
		return nil
	}
	dead, err := session.MarkDead(t.ctx)
	t.requests++
	if dead || err != nil {
		return err
	}
	if err := t.lookAtSession(); err != nil { // renewed since: look at the clock again
		return err
	}
	return errSessionLives
}

func (t *plainRecord) grant(takeOver bool) (Attempt, *protocol.Write) {
	a := t.c.Attempt(t.want.Timing.Lease, t.session)
	if takeOver {
		a.Dead = t.deadHolder()
	}
	g := t.c.Grant(t.want, a)
	g.Takeable = t.tried.Versions()
	g.Entry = t.queueEntry()
	switch {
	case takeOver && t.view.Ours:
		g.Takeable = append(g.Takeable, t.seen.Version)
	case takeOver:
		g.Dead = t.seen
		if t.seen.Handed {
			g.NoQueueUntil = decide.SuspendedUntil(t.c.Wall(), t.c.Lease)
		}
	}
	return a, t.c.Proto.Grant(g)
}

// deadHolder returns the dead holder that a takeover replaces. If the record shows an
// attempt of our own, that is the holder which that attempt has replaced.
func (t *plainRecord) deadHolder() *protocol.Record {
	if !t.view.Ours {
		return t.seen
	}
	a, _ := t.tried.Find(t.seen.Version)
	return a.Dead
}

// shows returns the attempt whose grant a record shows: one delivered twice, or an
// earlier one without an answer. At least half of its trust must be left.
func (t *plainRecord) shows(item protocol.Item, sent []Attempt) (Attempt, bool) {
	if item == nil {
		return Attempt{}, false
	}
	r, err := t.c.Decode(t.want.Key, item)
	if a, ok := t.handedBy(r); ok && err == nil && !r.Released {
		return a, true
	}
	a, ok := attempts.Find(sent, r.Version)
	return a, ok && err == nil && !r.Released && a.isWorthHaving(t.want.Timing, t.c.Now())
}

func (t *plainRecord) rejected(r attempts.Result[Attempt]) {
	if t.seen != nil && t.seen.Version == r.Attempt.Version {
		t.view.Ours = true
	}
}
