package line

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
)

// Lines are the lines of one client, by key. They are safe for concurrent use.
//
// C is what a waiter's caller needs when it is handed the key. G is a grant; its zero
// value means none. H is what is reported of a holder.
type Lines[K comparable, C any, G comparable, H any] struct {
	cfg Config[G, H]

	mu    sync.Mutex
	byKey map[K]*line[K, C, G, H] // of which somebody has the turn
}

// Config says how long a key stays in the process, and what lines ask about a grant.
// The functions are called while the lines are locked: they must not call the lines.
type Config[G, H any] struct {
	HandOvers        int           // in a row; negative: none
	PollMin, PollMax time.Duration // of the pauses of other processes

	Age    func(G) time.Duration // since it was granted
	Ended  func(G) bool
	Holder func(G) H
}

// line is the line of one key.
type line[K comparable, C any, G comparable, H any] struct {
	waiting   []*Waiter[K, C, G, H]
	grant     G             // of the one whose turn it is, once the key is granted
	reported  *H            // the holder last reported, until the key is granted here or the turn passed on
	before    *H            // the one whom the last turn knew, if it ended without a grant
	handOvers int           // in a row
	longest   time.Duration // that one of those grants was held
}

// New returns lines in which nobody waits.
func New[K comparable, C any, G comparable, H any](cfg Config[G, H]) *Lines[K, C, G, H] {
	return &Lines[K, C, G, H]{cfg: cfg, byKey: map[K]*line[K, C, G, H]{}}
}

// Join puts a waiter in the line of its key. The first one gets its turn at once.
func (l *Lines[K, C, G, H]) Join(w *Waiter[K, C, G, H]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln, ok := l.byKey[w.Key]
	if !ok {
		l.byKey[w.Key] = &line[K, C, G, H]{}
		w.turns <- Turn[K, C, G, H]{Of: w}
		return
	}
	ln.waiting = append(ln.waiting, w)
	l.tellHolder(ln)
}

// TakeAll takes the turns of all keys at once, if nobody has one of them. Otherwise it
// takes none, and returns the first key whose turn is taken.
func (l *Lines[K, C, G, H]) TakeAll(keys ...K) (busy K, all bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keys {
		if l.byKey[key] != nil {
			return key, false
		}
	}
	for _, key := range keys {
		l.byKey[key] = &line[K, C, G, H]{}
	}
	return busy, true
}

// Leave takes a waiter out of its line. If a turn had come already, its own or that of
// another waiter with the same channel, Leave returns it, and the caller passes it on.
func (l *Lines[K, C, G, H]) Leave(w *Waiter[K, C, G, H]) (Turn[K, C, G, H], bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.left = true
	if ln := l.byKey[w.Key]; ln != nil {
		ln.waiting = slices.DeleteFunc(ln.waiting, func(other *Waiter[K, C, G, H]) bool { return other == w })
	}
	select {
	case turn := <-w.turns:
		return turn, true
	default:
		return Turn[K, C, G, H]{}, false
	}
}

// Holder returns who is known to hold the key, here or elsewhere; nil: nobody.
func (l *Lines[K, C, G, H]) Holder(key K) *H {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ln := l.byKey[key]; ln != nil {
		return l.holder(ln)
	}
	return nil
}

// LastHolder is Holder, or whom the last turn knew: it may have released the key since.
func (l *Lines[K, C, G, H]) LastHolder(key K) *H {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := l.byKey[key]
	if ln == nil {
		return nil
	}
	return cmp.Or(l.holder(ln), ln.before)
}

// ReportHolder says who holds a key that somebody is waiting to acquire. Waiters in its
// line with NoWait are told.
func (l *Lines[K, C, G, H]) ReportHolder(key K, holder *H) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ln := l.byKey[key]; ln != nil {
		ln.reported, ln.before = holder, nil
		l.tellHolder(ln)
	}
}

// Granted says that the one whose turn it is holds the key. If the grant has ended
// already, the turn is passed on.
func (l *Lines[K, C, G, H]) Granted(key K, grant G) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ln := l.byKey[key]; ln != nil {
		l.granted(ln, key, grant)
	}
}

// GrantedOutOfTurn says that the key is held by a grant that did not wait for a turn.
// If somebody has the turn, that one goes on waiting for the key.
func (l *Lines[K, C, G, H]) GrantedOutOfTurn(key K, grant G) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byKey[key] == nil {
		ln := &line[K, C, G, H]{}
		l.byKey[key] = ln
		l.granted(ln, key, grant)
	}
}

// Pass ends the turn of a key: the next in line gets it. grant is the grant of the one
// whose turn it is, zero before the key is granted. With any other grant Pass does
// nothing.
func (l *Lines[K, C, G, H]) Pass(key K, grant G) { l.PassAfter(key, grant, 0) }

// KeepOn says that no other process waits, or that one has had its turn: the hand-overs so
// far do not count.
func (l *Lines[K, C, G, H]) KeepOn(key K, grant G) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ln := l.byKey[key]; ln != nil && ln.grant == grant {
		ln.handOvers, ln.longest = 0, 0
	}
}

// PassAfter is Pass of a turn with a delay.
func (l *Lines[K, C, G, H]) PassAfter(key K, grant G, delay time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ln := l.byKey[key]; ln != nil && ln.grant == grant {
		l.pass(ln, key, delay)
	}
}

// holder returns who is known to hold the key. l.mu is held.
func (l *Lines[K, C, G, H]) holder(ln *line[K, C, G, H]) *H {
	var none G
	if ln.grant == none {
		return ln.reported
	}
	holder := l.cfg.Holder(ln.grant)
	return &holder
}

// tellHolder tells the waiters with NoWait who holds the key, if that is known. l.mu is
// held.
func (l *Lines[K, C, G, H]) tellHolder(ln *line[K, C, G, H]) {
	if len(ln.waiting) == 0 {
		return
	}
	holder := l.holder(ln)
	if holder == nil {
		return
	}
	ln.waiting = slices.DeleteFunc(ln.waiting, func(w *Waiter[K, C, G, H]) bool {
		if w.NoWait {
			w.held <- holder
			w.left = true
		}
		return w.left
	})
}

// granted stores the grant of the one whose turn it is. l.mu is held.
func (l *Lines[K, C, G, H]) granted(ln *line[K, C, G, H], key K, grant G) {
	ln.grant, ln.reported, ln.before = grant, nil, nil
	l.tellHolder(ln)
	if l.cfg.Ended(grant) {
		l.pass(ln, key, 0)
	}
}

// pass gives the turn to the next. A waiter for one of several keys is not handed a
// key, but acquires one that was just released before any other process reads the
// record. That counts as a hand-over. l.mu is held.
func (l *Lines[K, C, G, H]) pass(ln *line[K, C, G, H], key K, delay time.Duration) {
	var none G
	several := len(ln.waiting) > 0 && ln.waiting[0].SeeksItself
	if several && ln.grant != none && l.cfg.HandOvers >= 0 {
		ln.handOvers++
		ln.longest = max(ln.longest, l.cfg.Age(ln.grant))
	}
	last := ln.handOvers > 0 && ln.handOvers >= l.cfg.HandOvers
	if last {
		delay = max(delay, decide.Pause(ln.longest, l.cfg.PollMin, l.cfg.PollMax, 1))
	}
	if last || !several {
		ln.handOvers, ln.longest = 0, 0
	}
	ln.before = cmp.Or(ln.reported, ln.before)
	ln.grant, ln.reported = none, nil
	if len(ln.waiting) == 0 {
		delete(l.byKey, key)
		return
	}
	w := ln.next()
	w.turns <- Turn[K, C, G, H]{Of: w, Delay: delay}
}

// next takes the first waiter out of the line.
func (ln *line[K, C, G, H]) next() *Waiter[K, C, G, H] {
	w := ln.waiting[0]
	ln.waiting = ln.waiting[1:]
	return w
}
