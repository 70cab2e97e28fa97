package seek

import (
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// A waiter that was refused joins the queue of the record, if the layout has queues. Its entry there is an attempt to be granted the key, without an answer
// yet, whose version is to be the id of the grant: whoever releases may apply it, and the
// waiter learns of that when it reads the record. So trust in it counts from the last
// request whose reply did not show it, for the shorter of the lease in the record and the
// waiter's own.

// mayStand reports whether the waiter may join the queue.
func (t *plainRecord) mayStand() bool { return t.c.Native != nil && !t.want.NoWait }

// recall begins a wait from the record that this client has left to another a moment ago.
func (t *plainRecord) recall() error {
	if !t.mayStand() || t.view.Known {
		return nil
	}
	item, sent, ok := t.c.Left.Take(t.want.Key, t.c.Now())
	if !ok {
		return nil
	}
	t.asked = sent
	return t.waiter.observe(item)
}

// isEntry reports whether a grant was made by an entry of this waiter, or by an entry that its
// client has given up.
func (t *plainRecord) isEntry(grant string) bool {
	_, ok := attempts.Find(t.entries, grant)
	return ok || grant != "" && t.c.IsUnsettled(t.want.Key, grant)
}

// join adds an entry to the queue if there is room, and the record has not shown one. The
// reply or the next look shows whether it has arrived.
func (t *plainRecord) join() error {
	if !t.mayStand() || t.holdsBack || t.joining || !t.wantsPlace() || !t.joins.Take(t.c.Now().Mono) {
		return nil
	}
	a := t.c.Attempt(t.want.Timing.Lease, nil)
	a.Version = protocol.NewVersionAt(t.since) // the time in it lets others estimate their wait
	t.entries = append(t.entries, a)
	t.joining, t.asked = true, a.Sent
	// Until the record has been seen it may stand first, and be handed the key.
	t.view.Position = &decide.Position{RoundTrip: t.took, Most: decide.LongestPauseInQueue(t.want.Timing.Lease, t.seen.Lease)}
	t.requests++
	r := t.c.Requests.Write(t.values, t.c.Native.Join(t.want.Key, waiterOf(a)), attempts.Limit)
	t.took = t.c.Now().Mono - a.Sent.Mono
	switch {
	case r.Effect == decide.Applied:
		return t.waiter.observe(r.Item)
	case r.Cause != decide.ConditionFailed:
		return &attempts.Failure{Cause: r.Cause, Err: r.Err}
	case r.Old == nil: // the record is gone, or the engine does not show it
		return nil
	}
	err := t.waiter.observe(r.Old)
	if t.place < 0 && !t.view.Ours { // else this is the reply to a second copy
		t.forget(a.Version)
	}
	return err
}

// wantsPlace reports whether the record, as far as it is known, is held by another and has
// room in its queue.
func (t *plainRecord) wantsPlace() bool {
	return t.view.Known && !t.view.Free && !t.view.Ours && t.place < 0 && t.c.HasQueue(*t.seen) && t.hasRoom()
}

// hasRoom reports whether the queue has room for the waiter: one that is overdue takes the
// last place, others leave some free.
func (t *plainRecord) hasRoom() bool {
	places := protocol.MostWaiters
	if !t.since.Before(t.front) {
		places -= protocol.LastPlaces
	}
	return len(t.seen.Waiters) < places
}

// noteQueue notes what a reply to the request sent at t.asked has shown of the queue. held is
// the record if somebody holds it.
func (t *plainRecord) noteQueue(item protocol.Item, held *protocol.Record) error {
	if !t.mayStand() {
		t.place = -1
		return nil
	}
	var shown protocol.Record
	switch {
	case held != nil:
		shown = *held
	case item != nil:
		var err error
		if shown, err = t.c.Decode(t.want.Key, item); err != nil {
			return err
		}
	}
	joined := t.joining
	t.joining, t.place = false, -1
	if n := len(t.entries); n > 0 {
		last := t.entries[n-1].Version
		t.place = slices.IndexFunc(shown.Waiters, func(w protocol.Waiter) bool { return w.Grant == last })
	}
	for i := range t.entries {
		if t.entries[i].Version != shown.Grant {
			t.entries[i].Sent = t.asked
		}
	}
	t.noteFront(frontOf(shown.Waiters), joined)
	t.view.Position, t.view.Outside = nil, nil
	switch {
	case t.place >= 0:
		t.view.Position = &decide.Position{Ahead: t.place, RoundTrip: t.took, Most: decide.LongestPauseInQueue(t.want.Timing.Lease, shown.Lease)}
	case t.holdsBack, !t.c.HasQueue(shown):
		// A call that is in the queues of other keys takes this one if it sees it free.
		// While the queue is suspended, all poll.
	default:
		t.view.Outside = t.outside()
	}
	return nil
}

// noteFront notes the front of the queue, and when it was seen. The reply to a join comes
// right after a look, and says nothing of the pause before that.
func (t *plainRecord) noteFront(front time.Time, joined bool) {
	t.front = front
	switch {
	case joined:
	case t.firstFront.IsZero():
		t.firstFront, t.firstAt, t.lookedAt = front, t.asked.Mono, t.asked.Mono
	default:
		t.last, t.lookedAt = durations.Less(t.asked.Mono, t.lookedAt), t.asked.Mono
	}
}

// outside returns the knowledge of a waiter without a place in the queue.
func (t *plainRecord) outside() *decide.Outside {
	return &decide.Outside{
		Waited: durations.Less(t.c.Now().Mono, t.began.Mono), RoundTrip: t.took,
		Ahead: t.since.Sub(t.front), Moved: t.front.Sub(t.firstFront),
		Seen: durations.Less(t.lookedAt, t.firstAt), Last: t.last,
	}
}

// handed returns the entry by which the record shows that the key was handed over, if it
// is held as it is. It is not if what a grant of this call writes is missing, or too
// little trust is left: then a grant of our own replaces it. The hand-over had no condition
// on the mark of done work: the record that shows the entry's grant has that mark, and nobody
// but its holder can change it.
func (t *plainRecord) handed() (Attempt, bool) {
	if t.seen == nil {
		return Attempt{}, false
	}
	return t.handedBy(*t.seen)
}

// holds takes the entry out by which the key is held, or the one that left the queue as
// the key was granted.
func (t *plainRecord) holds(version string) {
	if _, handed := attempts.Find(t.entries, version); !handed && t.queueEntry() != nil {
		version = t.queueEntry().Of.Grant
	}
	t.forget(version)
}

func (t *plainRecord) handedBy(r protocol.Record) (Attempt, bool) {
	a, ok := attempts.Find(t.entries, r.Grant)
	a.Handed, a.Lease = true, min(r.Lease, t.want.Timing.Lease) // a renewal with the own lease may be applied unseen
	return a, ok && r.Owner == a.Owner && !t.manual && t.want.Changes.In(r) && !t.want.Once.IsDone(r.Done) &&
		!t.c.keeper.Shares() && a.isWorthHaving(t.want.Timing, t.c.Now()) && !t.isSliver(a)
}

// isSliver reports whether so little trust in a hand-over is left, as where clocks may
// differ by most of its lease, that renewals could come too late: less than a second or, if
// the waiter's own lease is so short that a grant of its own is hardly trusted for longer,
// less than half of that trust.
func (t *plainRecord) isSliver(a Attempt) bool {
	until := t.want.Timing.Scaled(a.Lease).TrustedFrom(a.Sent)
	return t.c.Now().Remaining(until) < min(time.Second, t.want.Timing.Trust()/2)
}

// queueEntry returns the entry of the waiter as the record was last shown, nil if there is
// none. After a join that no record has shown it is taken to be at the head: a write that
// names it there in vain is rejected, and shows where the entry is.
func (t *plainRecord) queueEntry() *protocol.QueueEntry {
	place := t.place
	if t.joining {
		place = 0
	}
	if place < 0 || len(t.entries) == 0 {
		return nil
	}
	return &protocol.QueueEntry{Index: place, Of: waiterOf(t.entries[len(t.entries)-1])}
}

// frontOf is the front of a queue, by the times in its entries.
func frontOf(queue []protocol.Waiter) time.Time {
	began := make([]time.Time, len(queue))
	for i, w := range queue {
		began[i] = protocol.VersionTime(w.Grant)
	}
	return decide.Front(began)
}

// stands reports whether the waiter is in the queue, as far as it knows.
func (t *plainRecord) stands() bool { return t.joining || t.place >= 0 }

// forget drops an entry that has left the queue.
func (t *plainRecord) forget(version string) {
	t.entries = slices.DeleteFunc(t.entries, func(a Attempt) bool { return a.Version == version })
	t.place = -1
}

// giveUp leaves the queue. If the key was handed over meanwhile, it is freed. Each write
// that fails shows where the entry stands by then: further in front, so there are no more
// of them than places. A write that is throttled or has no answer is repeated: many waiters
// throttle the record, and an entry without a waiter would hold up the others. It is not
// repeated for longer than the entry would hold them up, as Close waits for this.
func (t *plainRecord) giveUp() {
	until := durations.Sum(t.c.Now().Mono, decide.HandOverLease(t.want.Timing.Lease))
	for range protocol.MostWaiters {
		at := t.queueEntry()
		if at == nil {
			break
		}
		r := t.c.Requests.Write(t.values, t.c.Native.Leave(t.want.Key, *at), attempts.Limit)
		if (r.Cause == decide.Busy || r.Cause == decide.Unreachable) && t.c.Now().Mono < until {
			t.c.Requests.Pause(t.values, &t.pauses)
			continue
		}
		if r.Cause != decide.ConditionFailed || r.Old == nil {
			return
		}
		shown, err := t.c.Decode(t.want.Key, r.Old)
		if err != nil || t.noteQueue(r.Old, &shown) != nil {
			return
		}
		t.seen = &shown
	}
	if t.seen == nil || t.seen.Released {
		return
	}
	if a, ok := attempts.Find(t.entries, t.seen.Grant); ok {
		hold := protocol.Hold{Key: t.want.Key, Owner: a.Owner, Grants: []string{a.Version}, Token: t.seen.Token, Versions: []string{t.seen.Version}}
		t.c.write(t.values, t.c.Freeing(t.c.Proto, hold, t.want.Delete))
	}
}

func waiterOf(a Attempt) protocol.Waiter { return protocol.Waiter{Grant: a.Version, Owner: a.Owner} }
