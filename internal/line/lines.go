package line

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Lines are the lines of one client, by key. They are safe for concurrent use.
//
// C is what a waiter's caller needs when it is handed the key.
type Lines[C any, G grantType] struct {
	handOvers        int           // of a key in a row
	pollMin, pollMax time.Duration // of the pauses of other processes

	mu    sync.Mutex
	byKey map[protocol.Key]*line[C, G] // of which somebody has the turn
}

// Grant is a key that this client holds. Lines call its methods while they are locked:
// those must not call the lines.
type Grant interface {
	Age() time.Duration      // since the key was granted
	IsOver() bool            // the grant has ended
	Record() protocol.Record // what waiters are told of the holder
}

type grantType interface {
	comparable // its zero value means none
	Grant
}

// line is the line of one key.
type line[C any, G grantType] struct {
	waiting   []*Waiter[C, G]
	grant     G                // of the one whose turn it is, once the key is granted
	reported  *protocol.Record // the holder last reported, until the key is granted here or the turn passed on
	before    *protocol.Record // the one whom the last turn knew, if it ended without a grant
	known     bool             // its holder was reported, or its grant: DynamoDB has answered a request for the key
	handOvers int              // in a row
	longest   time.Duration    // that one of those grants was held
}

// New returns lines in which nobody waits. A key is handed over so many times in a row.
// pollMin and pollMax bound the pauses of other processes.
func New[C any, G grantType](handOvers int, pollMin, pollMax time.Duration) *Lines[C, G] {
	return &Lines[C, G]{handOvers: handOvers, pollMin: pollMin, pollMax: pollMax, byKey: map[protocol.Key]*line[C, G]{}}
}

// Join puts a waiter in the line of its key. The first one gets its turn at once.
func (l *Lines[C, G]) Join(w *Waiter[C, G]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln, ok := l.byKey[w.Key]
	if !ok {
		l.byKey[w.Key] = &line[C, G]{}
		w.turns <- Turn[C, G]{Of: w}
		return
	}
	ln.waiting = append(ln.waiting, w)
	l.tellHolder(ln)
}

// Take takes the turn of a key, unless somebody has it.
func (l *Lines[C, G]) Take(key protocol.Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byKey[key] != nil {
		return false
	}
	l.byKey[key] = &line[C, G]{}
	return true
}

// Leave takes a waiter out of its line. If a turn had come already, its own or that of
// another waiter with the same channel, Leave returns it, and the caller passes it on.
func (l *Lines[C, G]) Leave(w *Waiter[C, G]) (Turn[C, G], bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.left = true
	if ln := l.byKey[w.Key]; ln != nil {
		ln.waiting = slices.DeleteFunc(ln.waiting, func(other *Waiter[C, G]) bool { return other == w })
	}
	select {
	case turn := <-w.turns:
		return turn, true
	default:
		return Turn[C, G]{}, false
	}
}

// Holder returns who is known to hold the key, here or elsewhere; nil: nobody.
func (l *Lines[C, G]) Holder(key protocol.Key) *protocol.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ln := l.byKey[key]; ln != nil {
		return l.holder(ln)
	}
	return nil
}

// LastHolder is Holder, or whom the last turn knew: it may have released the key since.
func (l *Lines[C, G]) LastHolder(key protocol.Key) *protocol.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := l.byKey[key]
	if ln == nil {
		return nil
	}
	return cmp.Or(l.holder(ln), ln.before)
}

// IsKnown reports whether a holder of the key was reported, or a grant, since the line
// began: DynamoDB has answered a request for the key.
func (l *Lines[C, G]) IsKnown(key protocol.Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := l.byKey[key]
	return ln != nil && ln.known
}

// ReportHolder says who holds a key that somebody is waiting to acquire. Waiters in its
// line with NoWait are told.
func (l *Lines[C, G]) ReportHolder(key protocol.Key, holder *protocol.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ln := l.byKey[key]; ln != nil {
		ln.reported, ln.before, ln.known = holder, nil, true
		l.tellHolder(ln)
	}
}

// Granted says that the one whose turn it is holds the key. If the grant has ended
// already, the turn is passed on.
func (l *Lines[C, G]) Granted(key protocol.Key, grant G) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ln := l.byKey[key]; ln != nil {
		l.granted(ln, key, grant)
	}
}

// GrantedOutOfTurn says that the key is held by a grant that did not wait for a turn.
// If somebody has the turn, that one goes on waiting for the key.
func (l *Lines[C, G]) GrantedOutOfTurn(key protocol.Key, grant G) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byKey[key] == nil {
		ln := &line[C, G]{}
		l.byKey[key] = ln
		l.granted(ln, key, grant)
	}
}

// Pass ends the turn of a key: the next in line gets it. grant is the grant of the one
// whose turn it is, zero before the key is granted. With any other grant Pass does
// nothing.
func (l *Lines[C, G]) Pass(key protocol.Key, grant G) { l.PassAfter(key, grant, 0) }

// PassQueued is Pass where the record has a queue: other processes stand there, so none
// needs time to find the key free.
func (l *Lines[C, G]) PassQueued(key protocol.Key, grant G) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ln := l.byKey[key]; ln != nil && ln.grant == grant {
		ln.handOvers, ln.longest = 0, 0
		l.pass(ln, key, 0)
	}
}

// PassAfter is Pass of a turn with a delay.
func (l *Lines[C, G]) PassAfter(key protocol.Key, grant G, delay time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ln := l.byKey[key]; ln != nil && ln.grant == grant {
		l.pass(ln, key, delay)
	}
}

// holder returns who is known to hold the key. l.mu is held.
func (l *Lines[C, G]) holder(ln *line[C, G]) *protocol.Record {
	var none G
	if ln.grant == none {
		return ln.reported
	}
	holder := ln.grant.Record()
	return &holder
}

// tellHolder tells the waiters with NoWait who holds the key, if that is known. l.mu is
// held.
func (l *Lines[C, G]) tellHolder(ln *line[C, G]) {
	if len(ln.waiting) == 0 {
		return
	}
	holder := l.holder(ln)
	if holder == nil {
		return
	}
	ln.waiting = slices.DeleteFunc(ln.waiting, func(w *Waiter[C, G]) bool {
		if w.NoWait {
			w.held <- holder
			w.left = true
		}
		return w.left
	})
}

// granted stores the grant of the one whose turn it is. l.mu is held.
func (l *Lines[C, G]) granted(ln *line[C, G], key protocol.Key, grant G) {
	ln.grant, ln.reported, ln.before, ln.known = grant, nil, nil, true
	l.tellHolder(ln)
	if grant.IsOver() {
		l.pass(ln, key, 0)
	}
}

// pass gives the turn to the next. A waiter for one of several keys is not handed a
// key, but acquires one that was just released before any other process reads the
// record. That counts as a hand-over. l.mu is held.
func (l *Lines[C, G]) pass(ln *line[C, G], key protocol.Key, delay time.Duration) {
	var none G
	several := len(ln.waiting) > 0 && ln.waiting[0].SeeksItself
	if several && ln.grant != none {
		ln.handOvers++
		ln.longest = max(ln.longest, ln.grant.Age())
	}
	last := ln.handOvers >= l.handOvers
	if last {
		delay = max(delay, decide.Pause(ln.longest, l.pollMin, l.pollMax, 1))
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
	w.turns <- Turn[C, G]{Of: w, Delay: delay}
}

// next takes the first waiter out of the line.
func (ln *line[C, G]) next() *Waiter[C, G] {
	w := ln.waiting[0]
	ln.waiting = ln.waiting[1:]
	return w
}
