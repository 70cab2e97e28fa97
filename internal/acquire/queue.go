package acquire

import (
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// A waiter whose grant was rejected joins the queue of the record, if the layout has
// queues. Its entry is an attempt that another client may apply: the client that releases
// the key. The version of the entry then becomes the id of the grant, and the waiter learns
// of the grant when it reads the record. So trust in the grant counts from the last request
// whose reply did not show the grant. It lasts for the shorter of the lease in the record
// and the waiter's own lease.

// inQueue is the waiter's state in the record's queue: what it knows about the queue, and
// about its own entries there.
type inQueue struct {
	since      time.Time      // time when the call began, by this client's wall clock
	entries    []GrantAttempt // entries of this waiter: a release may grant it the key by any of them
	place      int            // index of the waiter's last entry when the record was last read; -1 if the entry was not in the queue
	told       int            // the position, from 1, that was last reported to the listener
	joining    bool           // a join was sent, and the record has not been read since
	joins      decide.Joins   // limits the joins that may still be sent
	holdsBack  bool           // the waiter does not join, as its call is in the shorter queues of other keys
	front      time.Time      // the front of the queue when the record was last read; see frontOf
	firstFront time.Time      // the front when it was first seen
	firstAt    time.Duration  // monotonic time when firstFront was seen
	lookedAt   time.Duration  // monotonic time when the last read was sent
	last       time.Duration  // time between the last two reads
}

// mayQueue reports whether the waiter may join the queue: the layout has queues, and the
// call waits.
func (w *waiter) mayQueue() bool { return w.c.Native != nil && !w.want.NoWait }

// recall begins a wait without a read. It starts from the record in the state in which this
// client left it when it handed the key to another client a moment ago.
func (w *waiter) recall() error {
	if !w.mayQueue() || w.view.Known {
		return nil
	}
	item, sent, ok := w.c.Left.Take(w.want.Key, w.c.Now())
	if !ok {
		return nil
	}
	w.asked = sent
	return w.observe(item)
}

// join adds an entry to the queue if the queue has room and the record shows no entry of
// this waiter. The reply, or the next read, shows whether the entry was added.
func (w *waiter) join() error {
	if !w.wantsPlace() || !w.queue.joins.Take(w.c.Now().Mono) {
		return nil
	}
	a := w.c.Attempt(w.want.Timing.Lease, nil)
	a.Version = protocol.NewVersionAt(w.queue.since) // the version contains the time of the call, so that waiters outside the queue can estimate how long they will wait
	w.queue.entries = append(w.queue.entries, a)
	w.queue.joining, w.asked = true, a.Sent
	// Until the record has been read, the entry may be the head, and may be handed the key.
	w.view.Position = w.position(0, *w.seen)
	w.requests++
	r := w.c.Requests.Write(w.values, w.c.Native.Join(w.want.Key, waiterOf(a)), attempts.Limit)
	w.c.noteRoundTrip(a.Sent)
	switch {
	case r.Effect == decide.Applied:
		return w.observe(r.Item)
	case r.Cause != decide.ConditionFailed:
		return &attempts.Failure{Cause: r.Cause, Err: r.Err}
	case r.Old == nil: // the record is gone, or the engine does not return it
		return nil
	}
	err := w.observe(r.Old)
	if w.queue.place < 0 && !w.view.Ours { // otherwise the entry is in the record, and this reply answers a second copy of the request
		w.forget(a.Version)
	}
	return err
}

// wantsPlace reports whether the waiter is to join the queue: when the record was last read,
// another client held the key, and the queue had room. Only a waiter that is overdue may
// take the last places.
func (w *waiter) wantsPlace() bool {
	if !w.mayQueue() || w.queue.holdsBack || w.isQueued() || w.seen == nil || w.view.Ours || !w.c.HasQueue(*w.seen) {
		return false
	}
	places := protocol.MostWaiters
	if !w.queue.since.Before(w.queue.front) {
		places -= protocol.LastPlaces
	}
	return len(w.seen.Waiters) < places
}

// noteQueue records what a reply has shown of the queue. Its request was sent at w.asked.
// held is the record if a client holds the key, and nil otherwise.
func (w *waiter) noteQueue(item protocol.Item, held *protocol.Record) {
	if !w.mayQueue() {
		return
	}
	var shown protocol.Record
	if held != nil {
		shown = *held
	} else if item != nil {
		shown, _ = w.c.Decode(w.want.Key, item) // cannot fail: the caller has already decoded the item
	}
	joined := w.queue.joining
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
	w.noteFront(frontOf(shown.Waiters), joined)
	w.view.Position, w.view.Outside = nil, nil
	switch {
	case w.queue.place >= 0:
		w.view.Position = w.position(w.queue.place, shown)
	case w.queue.holdsBack, !w.c.HasQueue(shown):
		// If a call is in the queues of other keys, it reads this key, and acquires it if
		// it is free. While the queue is suspended, all waiters poll.
	default:
		w.view.Outside = w.outside()
	}
}

// position returns the data that decide the pauses of a waiter behind ahead others in the
// queue of record r.
func (w *waiter) position(ahead int, r protocol.Record) *decide.Position {
	return &decide.Position{Ahead: ahead, RoundTrip: w.c.RoundTrip(), Most: decide.LongestPauseInQueue(w.want.Timing.Lease, r.Lease)}
}

// noteFront records the front of the queue, and when it was seen. joined is set for the
// reply to a join. Such a reply comes right after a read, so it does not show how far the
// front moves between two reads.
func (w *waiter) noteFront(front time.Time, joined bool) {
	w.queue.front = front
	switch {
	case joined:
	case w.queue.firstFront.IsZero():
		w.queue.firstFront, w.queue.firstAt, w.queue.lookedAt = front, w.asked.Mono, w.asked.Mono
	default:
		w.queue.last, w.queue.lookedAt = durations.Less(w.asked.Mono, w.queue.lookedAt), w.asked.Mono
	}
}

// outside returns the data that decide the pauses of a waiter without a place in the queue.
func (w *waiter) outside() *decide.Outside {
	return &decide.Outside{
		Waited: durations.Less(w.c.Now().Mono, w.began.Mono), RoundTrip: w.c.RoundTrip(),
		Ahead: w.queue.since.Sub(w.queue.front), Moved: w.queue.front.Sub(w.queue.firstFront),
		Seen: durations.Less(w.queue.lookedAt, w.queue.firstAt), Last: w.queue.last,
	}
}

// handed returns the entry by which the key was handed to this waiter, according to the
// record r. It returns false if the record lacks something that a grant of this call would
// write, or if too little trust is left. In these cases this call sends a grant that
// replaces the hand-over. A hand-over does not check whether the work is marked as done.
// handed checks the mark in r instead: only the holder can change the mark.
func (w *waiter) handed(r protocol.Record) (GrantAttempt, bool) {
	a, ok := attempts.Find(w.queue.entries, r.Grant)
	a.Handed, a.Lease = true, min(r.Lease, w.want.Timing.Lease) // the shorter lease counts, as a renewal stores the waiter's own lease and may be applied without an answer
	return a, ok && r.Owner == a.Owner && !w.manual && w.want.Changes.In(r) && !w.want.Once.IsDone(r.Done) &&
		!w.c.keeper.Shares() && a.isWorthHaving(w.want.Timing, w.c.Now()) && !w.isSliver(a)
}

// isSliver reports whether so little trust in a hand-over is left that renewals could come
// too late. This happens, for example, if the clocks may differ by most of the hand-over's
// lease. The limit is one second of trust. If the waiter's own grant would be trusted for
// less than two seconds, the limit is half of that time.
func (w *waiter) isSliver(a GrantAttempt) bool {
	until := w.want.Timing.Scaled(a.Lease).TrustedFrom(a.Sent)
	return w.c.Now().Remaining(until) < min(time.Second, w.want.Timing.Trust()/2)
}

// queueEntry returns the waiter's entry as it was last read, or nil if the waiter was not in
// the queue. Between a join and the next read, it assumes that the entry is the head. If that
// is wrong, the write that names the entry is rejected, and the reply shows where the entry
// is.
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

// frontOf returns the front of a queue, computed by decide.Front from the times in its
// entries.
func frontOf(queue []protocol.Waiter) time.Time {
	began := make([]time.Time, len(queue))
	for i, w := range queue {
		began[i] = protocol.VersionTime(w.Grant)
	}
	return decide.Front(began)
}

// isQueued reports whether the waiter is in the queue, as far as it knows.
func (w *waiter) isQueued() bool { return w.queue.joining || w.queue.place >= 0 }

// forget removes an entry that has left the queue.
func (w *waiter) forget(version string) {
	w.queue.entries = slices.DeleteFunc(w.queue.entries, func(a GrantAttempt) bool { return a.Version == version })
	w.queue.place = -1
}

// leaveQueue removes the waiter's entry from the queue. If the key was handed to the waiter
// meanwhile, leaveQueue frees the key. After a rejected write, it tries again with the
// entry's new index. Each new index is lower, so there are no more rejections than places.
// If a write is throttled or has no answer, leaveQueue repeats the write. Many waiters
// throttle the record, and an entry without a waiter would delay the others. leaveQueue
// repeats the write only for as long as the entry could delay them, as Close waits for
// leaveQueue.
func (w *waiter) leaveQueue() {
	until := durations.Sum(w.c.Now().Mono, decide.HandOverLease(w.want.Timing.Lease))
	for range protocol.MostWaiters {
		at := w.queueEntry()
		if at == nil {
			break
		}
		r := w.c.Requests.Write(w.values, w.c.Native.Leave(w.want.Key, *at), attempts.Limit)
		if (r.Cause == decide.Busy || r.Cause == decide.Unreachable) && w.c.Now().Mono < until {
			w.c.Requests.Pause(w.values, &w.pauses)
			continue
		}
		if r.Cause != decide.ConditionFailed || r.Old == nil {
			return
		}
		shown, err := w.c.Decode(w.want.Key, r.Old)
		if err != nil {
			return
		}
		w.noteQueue(r.Old, &shown)
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
