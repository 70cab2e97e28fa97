package localqueue

import "github.com/leasehold-go/leasehold/internal/protocol"

// Successor takes the next waiter out of the queue, so that a release of the grant can hand
// the key to that waiter. It returns nil if there is no waiter, or if other processes are
// next. The turn stays with the grant until HandOver or LetSeek. queued means that the
// record has a queue, and that this queue is empty. In this case no other process polls,
// and hand-overs are not counted.
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
	if q.handOvers >= l.handOvers || len(q.waiting) == 0 || q.waiting[0].SeeksItself {
		return nil
	}
	q.handOvers++
	return q.next()
}

// HandOver gives a successor its turn, and the key with it. It returns false if the
// successor has left. The turn then stays with the previous grant.
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
	to.turns <- Turn[C, G]{Of: to, Granted: granted} // sent last, because the new grant may be released from here on
	return true
}

// LetSeek gives a successor its turn without the key. It returns false if the successor has
// left. The turn then stays with the previous grant.
func (l *Queues[C, G]) LetSeek(to *Waiter[C, G]) bool {
	var none G
	return l.HandOver(to, none)
}
