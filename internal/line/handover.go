package line

import "github.com/leasehold-go/leasehold/internal/protocol"

// Successor takes the waiter out of the line to which a release of the grant may hand
// the key. Nil: there is none, or it is other processes' turn. The grant keeps the
// turn until HandOver or LetSeek. queued says that the record has a queue, and that
// nobody stands there: other processes poll for nothing, and hand-overs do not count.
func (l *Lines[C, G]) Successor(key protocol.Key, grant G, queued bool) *Waiter[C, G] {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := l.byKey[key]
	if ln == nil || ln.grant != grant {
		return nil
	}
	if queued {
		ln.handOvers, ln.longest = 0, 0
	}
	ln.longest = max(ln.longest, grant.Age())
	if ln.handOvers >= l.handOvers || len(ln.waiting) == 0 || ln.waiting[0].SeeksItself {
		return nil
	}
	ln.handOvers++
	return ln.next()
}

// HandOver gives a successor its turn, and the key with it. False: it has left, and its
// predecessor still has the turn.
func (l *Lines[C, G]) HandOver(to *Waiter[C, G], granted G) bool {
	return l.give(Turn[C, G]{Of: to, Granted: granted})
}

// LetSeek gives a successor its turn without the key. False: it has left, and its
// predecessor still has the turn.
func (l *Lines[C, G]) LetSeek(to *Waiter[C, G]) bool {
	return l.give(Turn[C, G]{Of: to})
}

func (l *Lines[C, G]) give(turn Turn[C, G]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if turn.Of.left {
		return false
	}
	var none G
	ln := l.byKey[turn.Of.Key]
	ln.grant = none
	if turn.Granted != none {
		l.granted(ln, turn.Of.Key, turn.Granted)
	}
	turn.Of.turns <- turn // last: its grant may be released from here on
	return true
}
