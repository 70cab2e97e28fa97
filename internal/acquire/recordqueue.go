package acquire

import (
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// The id of a grant made from a queue entry is the entry's version. If the reply to a request does
// not show the grant, the grant was written after that request was sent. So the waiter counts the
// trusted time from the last such request.

// inQueue contains what a waiter knows about the queue of the record and about its own
// entries in it.
type inQueue struct {
	since      time.Time      // time when the call began, by the client's wall clock
	entries    []GrantAttempt // entries that the waiter has added: a release may turn any of them into a grant
	place      int            // index of the waiter's most recent entry in the queue, as of the last read; -1 if the entry was absent
	told       int            // the position, 1 for the head and 0 outside the queue, last reported with the current holder; -1 if that holder was not reported yet
	joining    bool           // the waiter has sent a join (a write that adds an entry), and has not read the record since
	joins      decide.Joins   // limits how many joins the call may send
	holdsBack  bool           // the waiter does not join the queue, as its call has joined the shorter queues of other keys
	firstFront time.Time      // the front of the queue (see frontOf) when it was first seen
	firstAt    time.Duration  // monotonic time when firstFront was seen
	lookedAt   time.Duration  // monotonic time when the last read was sent
	last       time.Duration  // time between the last two reads, from request to request
}

// mayQueue reports whether the waiter may join the queue of the record. It returns true if the
// layout has queues and the caller has not set NoWait.
func (w *waiter) mayQueue() bool { return w.c.Native != nil && !w.want.NoWait }

// recall replaces the waiter's first read if this client has just handed the key to another client
// (see Left). It ignores a record that would end the wait: others may have changed it since, for
// example by removing its done mark.
func (w *waiter) recall() error {
	if !w.mayQueue() || w.view.Known {
		return nil
	}
	item, sent, ok := w.c.Left.Take(w.want.Key, w.c.Now())
	if !ok {
		return nil
	}
	if r, err := w.c.Decode(w.want.Key, item); err != nil || w.want.Once.IsDone(r.Done) {
		return nil
	}
	w.asked = sent
	return w.observe(item)
}

// join adds an entry of the waiter to the queue, if wantsPlace returns true and the call has not
// sent too many joins. The reply, or the next read, shows whether the queue contains the entry.
func (w *waiter) join() error {
	if !w.wantsPlace() || !w.queue.joins.Take(w.c.Now().Mono) {
		return nil
	}
	a := w.c.Attempt(w.want.Timing.Lease, nil)
	// The version contains the time when the call began, so that waiters outside the queue can
	// estimate how long they will wait.
	a.Version = protocol.NewVersionAt(w.queue.since)
	w.queue.entries = append(w.queue.entries, a)
	w.queue.joining, w.asked = true, a.Sent
	// Until the waiter reads the record again, its entry may be the head of the queue, and a
	// release may hand the key to it.
	w.view.Position = w.position(0, *w.seen)
	w.requests.Add(1)
	r := w.c.Requests.Write(w.values, w.c.Native.Join(w.want.Key, waiterOf(a)), attempts.Limit)
	w.c.noteRoundTrip(a.Sent)
	switch {
	case r.Effect == decide.Applied:
		return w.observe(r.Item)
	case r.Cause != decide.ConditionFailed:
		return &attempts.Failure{Cause: r.Cause, Err: r.Err}
	case r.Item == nil: // the record is gone, or the DynamoDB-compatible engine does not return it with a failed condition
		return nil
	}
	err := w.observe(r.Item)
	// If the record contains neither the entry nor a grant made from it, the join was not applied:
	// forget the entry. Otherwise the network has delivered the join twice: DynamoDB has applied
	// the first copy, and this reply is the rejection of the second.
	if w.queue.place < 0 && !w.view.Ours {
		w.forget(a.Version)
	}
	return err
}

// wantsPlace reports whether the waiter is to join the queue of a held key. The last
// protocol.LastPlaces places are reserved for waiters that have waited longer than at least half of
// the waiters in the queue (see frontOf).
func (w *waiter) wantsPlace() bool {
	if !w.mayQueue() || w.queue.holdsBack || w.isQueued() || w.seen == nil || w.view.Ours || !w.c.HasQueue(*w.seen) {
		return false
	}
	queue := w.seen.Waiters
	return len(queue) < protocol.MostWaiters-protocol.LastPlaces ||
		len(queue) < protocol.MostWaiters && w.queue.since.Before(frontOf(queue))
}

// noteQueue records the state of the queue. The parameter "shown" is the record in a reply, or an
// empty record if the key has none. The waiter sent the request for that reply at w.asked.
func (w *waiter) noteQueue(shown protocol.Record) {
	if !w.mayQueue() {
		return
	}
	front := frontOf(shown.Waiters)
	if !w.queue.joining {
		// Do not count the first reply after a join as a read. It comes right after a read, and the
		// time between two reads limits the next pause (see decide.Outside).
		w.noteFront(front)
	}
	w.queue.joining, w.queue.place = false, -1
	if n := len(w.queue.entries); n > 0 {
		last := w.queue.entries[n-1].Version
		w.queue.place = slices.IndexFunc(shown.Waiters, func(w protocol.Waiter) bool { return w.Grant == last })
	}
	for i := range w.queue.entries {
		if w.queue.entries[i].Version != shown.Grant {
			w.queue.entries[i].Sent = w.asked
		}
	}
	w.view.Position, w.view.Outside = nil, nil
	switch {
	case w.queue.place >= 0:
		w.view.Position = w.position(w.queue.place, shown)
	case w.queue.holdsBack, !w.c.HasQueue(shown):
		// The waiter polls: its call has joined the queues of other keys instead, or the queue is
		// suspended.
	default:
		w.view.Outside = w.outside(front)
	}
}

// position returns the data from which decide.Next computes the pauses of a waiter in the queue of
// record r. The parameter "ahead" counts the entries before the waiter's own entry.
func (w *waiter) position(ahead int, r protocol.Record) *decide.Position {
	return &decide.Position{Ahead: ahead, RoundTrip: w.c.RoundTrip(), Most: decide.LongestPauseInQueue(w.want.Timing.Lease, r.Lease)}
}

// noteFront records the front of the queue (see frontOf) at the first read, and the time between
// the last two reads.
func (w *waiter) noteFront(front time.Time) {
	if w.queue.firstFront.IsZero() {
		w.queue.firstFront, w.queue.firstAt, w.queue.lookedAt = front, w.asked.Mono, w.asked.Mono
		return
	}
	w.queue.last, w.queue.lookedAt = durations.Less(w.asked.Mono, w.queue.lookedAt), w.asked.Mono
}

// outside returns the data from which decide.Next computes the pauses of a waiter that has no entry
// in the queue. The parameter "front" is the front of the queue (see frontOf).
func (w *waiter) outside(front time.Time) *decide.Outside {
	return &decide.Outside{
		Waited: durations.Less(w.c.Now().Mono, w.began.Mono), RoundTrip: w.c.RoundTrip(),
		Ahead: w.queue.since.Sub(front), Moved: front.Sub(w.queue.firstFront),
		Seen: durations.Less(w.queue.lookedAt, w.queue.firstAt), Last: w.queue.last,
	}
}

// handed returns the waiter's queue entry from which a release has made the grant in r. It returns
// false if there is no such entry, or if the call cannot use the grant, for example because it
// lacks the caller's data.
func (w *waiter) handed(r protocol.Record) (GrantAttempt, bool) {
	a, ok := attempts.Find(w.queue.entries, r.Grant)
	// Use the shorter lease, because the first renewal writes the waiter's own lease, and may be
	// applied even if the waiter gets no answer.
	a.Handed, a.Lease = true, min(r.Lease, w.want.Timing.Lease)
	// A hand-over does not check the done mark, so check it here. This is enough: once the waiter
	// holds the key, no other client can set the mark.
	return a, ok && r.Owner == a.Owner && !w.want.Manual && w.want.Changes.In(r) && !w.want.Once.IsDone(r.Done) &&
		!w.c.keeper.Shares() && a.isWorthHaving(w.want.Timing, w.c.Now()) && !w.isSliver(a)
}

// isSliver reports whether so little of a hand-over's trusted time is left that the first renewal
// could come too late. This can be so from the start, for example if MaxSkew is most of the lease.
// The margin of a hand-over's short lease is short, too. So isSliver also returns true for a call
// whose margin is longer than the default: its work may need all of it to stop.
func (w *waiter) isSliver(a GrantAttempt) bool {
	full, short := w.want.Timing, w.want.Timing.Scaled(a.Lease)
	return w.c.Now().Remaining(short.TrustedFrom(a.Sent)) < min(time.Second, full.Trust()/2) ||
		short.Margin < full.Margin && full.Margin > lease.Usual(full.Lease, full.Skew).Margin
}

// queueEntry returns the waiter's last entry with its last known index, or nil if the queue had no
// entry of the waiter. Between a join and the next read, it assumes index 0. If that is wrong,
// DynamoDB rejects the write, and the reply shows the index.
func (w *waiter) queueEntry() *protocol.QueueEntry {
	place := w.queue.place
	if w.queue.joining {
		place = 0
	}
	if place < 0 || len(w.queue.entries) == 0 {
		return nil
	}
	return &protocol.QueueEntry{Index: place, Of: waiterOf(w.queue.entries[len(w.queue.entries)-1])}
}

// frontOf returns the front of a queue, as decide.Front defines it: the median of the times
// when the calls of the queued waiters began.
func frontOf(queue []protocol.Waiter) time.Time {
	began := make([]time.Time, len(queue))
	for i, w := range queue {
		began[i] = protocol.VersionTime(w.Grant)
	}
	return decide.Front(began)
}

// isQueued reports whether the last read has shown an entry of the waiter in the queue, or
// whether the waiter has sent a join since.
func (w *waiter) isQueued() bool { return w.queue.joining || w.queue.place >= 0 }

// forget removes the entry with the given version from the entries of the waiter, because the queue
// no longer contains it.
func (w *waiter) forget(version string) {
	w.queue.entries = slices.DeleteFunc(w.queue.entries, func(a GrantAttempt) bool { return a.Version == version })
	w.queue.place = -1
}

// leaveQueue removes the waiter's entry from the queue of the record. If a release has handed the
// key to the waiter meanwhile, leaveQueue frees the key. Close waits for leaveQueue.
func (w *waiter) leaveQueue() {
	until := durations.Sum(w.c.Now().Mono, decide.HandOverLease(w.want.Timing.Lease))
	// The condition of the write contains the entry's index. An entry only moves toward the head,
	// so DynamoDB rejects the write at most once for each place in the queue.
	for range protocol.MostWaiters {
		at := w.queueEntry()
		if at == nil {
			break
		}
		leave := w.c.Native.Leave(w.want.Key, *at)
		r := w.c.Requests.Write(w.values, leave, attempts.Limit)
		// Repeat the write: a release could hand the key to the entry, which would delay the next
		// waiters for one hand-over lease. Stop after that time, because Close waits.
		for (r.Cause == decide.Busy || r.Cause == decide.Unreachable) && w.c.Now().Mono < until {
			w.c.Requests.Pause(w.values, &w.pauses)
			r = w.c.Requests.Write(w.values, leave, attempts.Limit)
		}
		if r.Cause != decide.ConditionFailed {
			return
		}
		item := r.Item
		if item == nil { // the record is gone, or the DynamoDB-compatible engine does not return it with a failed condition
			item, _ = w.c.Requests.Read(w.values, w.want.Key) // if there is no answer, Decode below returns an error
		}
		shown, err := w.c.Decode(w.want.Key, item)
		if err != nil {
			return
		}
		w.noteQueue(shown)
		w.seen = &shown
	}
	if w.seen == nil || w.seen.Released {
		return
	}
	if a, ok := attempts.Find(w.queue.entries, w.seen.Grant); ok {
		w.free(protocol.Hold{Key: w.want.Key, Owner: a.Owner, Grants: []string{a.Version}, Token: w.seen.Token, Versions: []string{w.seen.Version}})
	}
}

func waiterOf(a GrantAttempt) protocol.Waiter {
	return protocol.Waiter{Grant: a.Version, Owner: a.Owner}
}

// free releases the key if its record shows the grant that the parameter "hold" describes. It sends
// the write only once.
func (w *waiter) free(hold protocol.Hold) {
	w.c.Requests.Write(w.values, w.c.Freeing(hold, w.want.Delete), attempts.Limit)
}
