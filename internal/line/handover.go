package line

// Successor takes the waiter out of the line to which a release of the grant may hand
// the key. Nil: there is none, or it is other processes' turn. The grant keeps the
// turn until HandOver or LetSeek.
func (l *Lines[K, C, G, H]) Successor(key K, grant G) *Waiter[K, C, G, H] {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := l.byKey[key]
	if ln == nil || ln.grant != grant {
		return nil
	}
	ln.longest = max(ln.longest, l.cfg.Age(grant))
	if ln.handOvers >= l.cfg.HandOvers || len(ln.waiting) == 0 || ln.waiting[0].SeeksItself {
		return nil
	}
	ln.handOvers++
	return ln.next()
}

// HandOver gives a successor its turn, and the key with it. False: it has left, and its
// predecessor still has the turn.
func (l *Lines[K, C, G, H]) HandOver(to *Waiter[K, C, G, H], granted G) bool {
	return l.give(Turn[K, C, G, H]{Of: to, Granted: granted})
}

// LetSeek gives a successor its turn without the key. False: it has left, and its
// predecessor still has the turn.
func (l *Lines[K, C, G, H]) LetSeek(to *Waiter[K, C, G, H]) bool {
	return l.give(Turn[K, C, G, H]{Of: to})
}

func (l *Lines[K, C, G, H]) give(turn Turn[K, C, G, H]) bool {
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
