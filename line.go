package leasehold

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
)

// lines keeps the goroutines of one client in order, key by key: one of them
// has the key's turn, to seek it or to hold it, the others wait without
// sending anything. It is safe for concurrent use and does no I/O.
type lines struct {
	limit            int // hand-overs in a row; negative: none
	pollMin, pollMax time.Duration

	mu    sync.Mutex
	byKey map[Key]*line
}

// line is the line of one key.
type line struct {
	queue     []*ticket
	holder    *holding      // who has the turn, once granted
	sighted   *Record       // who holds the key elsewhere, while the turn's owner seeks it
	handOvers int           // in a row
	longest   time.Duration // hold among them
}

// ticket is a place in a line.
type ticket struct {
	ctx   context.Context // the caller's, for its values
	want  *request
	turn  chan turn    // gets one value, of each of the tickets that share it
	known chan *Record // gets the holder, if want is not to wait
	gone  bool         // its caller has left; lines.mu guards it
}

// turn is a ticket's turn: the key itself, handed over, or the right to seek it.
type turn struct {
	of      *ticket
	granted *holding
	skip    time.Duration
}

func newLines(cfg Config) *lines {
	return &lines{limit: cfg.LocalHandOver, pollMin: cfg.PollMin, pollMax: cfg.PollMax, byKey: map[Key]*line{}}
}

// enter joins the line of a key. The first one has its turn at once.
func (l *lines) enter(ctx context.Context, want *request) *ticket {
	t := newTicket(ctx, want, make(chan turn, 1))
	l.join(t)
	return t
}

func newTicket(ctx context.Context, want *request, turns chan turn) *ticket {
	return &ticket{ctx: ctx, want: want, turn: turns, known: make(chan *Record, 1)}
}

// join puts a ticket in the line of its key.
func (l *lines) join(t *ticket) {
	want := t.want
	l.mu.Lock()
	defer l.mu.Unlock()
	ln, ok := l.byKey[want.key]
	if !ok {
		l.byKey[want.key] = &line{}
		t.turn <- turn{of: t}
		return
	}
	if want.noWait {
		if r := ln.knownHolder(); r != nil {
			t.known <- r
			t.gone = true
			return
		}
	}
	ln.queue = append(ln.queue, t)
}

// takeAll takes the turn of every key at once, if nobody has one of them. Else
// it takes none, and returns the first that somebody has.
func (l *lines) takeAll(wants []*request) *request {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, want := range wants {
		if l.byKey[want.key] != nil {
			return want
		}
	}
	for _, want := range wants {
		l.byKey[want.key] = &line{}
	}
	return nil
}

func (ln *line) knownHolder() *Record {
	if ln.holder != nil {
		r := ln.holder.currentRecord()
		return &r
	}
	return ln.sighted
}

// sight tells the line who holds its key elsewhere: those who do not want to
// wait need not.
func (l *lines) sight(key Key, r *Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ln := l.byKey[key]; ln != nil {
		ln.sighted = r
		ln.dismiss()
	}
}

// hold tells the line that the owner of its turn has the key. A grant that has
// ended already gives the turn on.
func (l *lines) hold(h *holding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ln := l.byKey[h.key]; ln != nil {
		l.holds(ln, h)
	}
}

// adopt is hold for a grant that was not sought here. Where the key has a line
// already, whoever has its turn goes on seeking.
func (l *lines) adopt(h *holding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byKey[h.key] == nil {
		ln := &line{}
		l.byKey[h.key] = ln
		l.holds(ln, h)
	}
}

// holds makes h the owner of the turn. l.mu is held.
func (l *lines) holds(ln *line, h *holding) {
	ln.holder, ln.sighted = h, nil
	ln.dismiss()
	if h.isOver() {
		l.passOn(ln, h.key)
	}
}

// holder returns who is known to hold the key, here or elsewhere.
func (l *lines) holder(key Key) *Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ln := l.byKey[key]; ln != nil {
		return ln.knownHolder()
	}
	return nil
}

// dismiss answers those who do not want to wait. lines.mu is held.
func (ln *line) dismiss() {
	r := ln.knownHolder()
	if r == nil {
		return
	}
	ln.queue = slices.DeleteFunc(ln.queue, func(t *ticket) bool {
		if t.want.noWait {
			t.known <- r
			t.gone = true
		}
		return t.gone
	})
}

// leave takes a ticket out of its line. If it had its turn by then, that is
// returned for the caller to pass on.
func (l *lines) leave(t *ticket) (turn, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t.gone = true
	if ln := l.byKey[t.want.key]; ln != nil {
		ln.queue = slices.DeleteFunc(ln.queue, func(q *ticket) bool { return q == t })
	}
	select {
	case given := <-t.turn:
		return given, true
	default:
		return turn{}, false
	}
}

// heir returns the ticket that the release of h may hand the key to, and takes
// it out of the line. Nil: nobody waits, or other processes are due.
func (l *lines) heir(h *holding, held time.Duration) *ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := l.byKey[h.key]
	if ln == nil || ln.holder != h {
		return nil
	}
	ln.longest = max(ln.longest, held)
	if ln.handOvers >= l.limit || len(ln.queue) == 0 || ln.queue[0].want.oneOfSeveral {
		// Who wants several keys holds none of them while it waits for another.
		return nil
	}
	ln.handOvers++
	return ln.pop()
}

func (ln *line) pop() *ticket {
	t := ln.queue[0]
	ln.queue = ln.queue[1:]
	return t
}

// deliver gives a ticket its turn, unless its caller has left.
func (l *lines) deliver(t *ticket, given turn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.gone {
		return false
	}
	ln := l.byKey[t.want.key]
	ln.holder = nil
	given.of = t
	t.turn <- given
	if given.granted != nil {
		l.holds(ln, given.granted)
	}
	return true
}

// pass ends the turn of a key: the next in line gets it. Only the turn's owner
// passes it, h if that is a grant, nil for one who seeks; of anybody else the
// call is ignored.
func (l *lines) pass(key Key, h *holding) { l.passAfter(key, h, 0) }

// passAfter is pass for a turn that is other processes' for a time yet.
func (l *lines) passAfter(key Key, h *holding, skip time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ln := l.byKey[key]; ln != nil && ln.holder == h {
		l.passOnAfter(ln, key, skip)
	}
}

func (l *lines) passOn(ln *line, key Key) { l.passOnAfter(ln, key, 0) }

// passOnAfter gives the turn to the next. After the last hand-over in a row that
// one is asked to skip a full poll, as long as the longest pause of anybody
// who watched those holds. Who wants one of several keys is handed none over, but
// takes what was released before any other process can look: that counts the
// same. l.mu is held.
func (l *lines) passOnAfter(ln *line, key Key, skip time.Duration) {
	several := len(ln.queue) > 0 && ln.queue[0].want.oneOfSeveral
	if several && ln.holder != nil && l.limit >= 0 {
		ln.handOvers++
		ln.longest = max(ln.longest, ln.holder.age())
	}
	over := ln.handOvers > 0 && ln.handOvers >= l.limit
	if over {
		skip = max(skip, decide.Pause(ln.longest, l.pollMin, l.pollMax, 1))
	}
	ln.holder, ln.sighted = nil, nil
	if over || !several {
		ln.handOvers, ln.longest = 0, 0
	}
	if len(ln.queue) == 0 {
		delete(l.byKey, key)
		return
	}
	t := ln.pop()
	t.turn <- turn{of: t, skip: skip}
}
