package localqueue

import "github.com/leasehold-go/leasehold/internal/protocol"

// Successor removes the first waiter from the queue of a key and returns it, so that the
// holder can hand the key to that waiter. grant is the holder's grant. Successor returns
// nil if the holder is to free the key: no waiter can accept it, or other processes are to
// get a chance. The holder's goroutine keeps the turn until HandOver is called.
// queued means that the record has a queue, and that this queue is empty. In this case no
// other process waits for the key, and Successor does not count hand-overs.
func (l *Queues[C, G]) Successor(key protocol.Key, grant G, queued bool) *Waiter[C, G] {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.byKey[key]
	if q == nil || q.grant != grant {
		return nil
	}
	if queued {
		q.handOvers, q.longest = 0, 0
	}
	q.longest = max(q.longest, grant.Age())
	if q.handOvers >= l.handOvers || len(q.waiting) == 0 || q.waiting[0].NoHandOver {
		return nil
	}
	q.handOvers++
	return q.next()
}

// HandOver gives the turn and the key to a waiter that Successor has returned. granted is
// the waiter's grant; the zero grant gives the turn alone. HandOver returns false if the
// waiter has left the queue. The goroutine of the previous grant then keeps the turn.
func (l *Queues[C, G]) HandOver(to *Waiter[C, G], granted G) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if to.left {
		return false
	}
	var none G
	q := l.byKey[to.Key]
	q.grant = none
	if granted != none {
		l.granted(q, to.Key, granted)
	}
	// Send the turn last, because the waiter may release the new grant as soon as it has
	// received the turn.
	to.turns <- Turn[C, G]{Of: to, Granted: granted}
	return true
}
