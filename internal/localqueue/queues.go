package localqueue

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Queues are the queues of one client, by key. They are safe for concurrent use.
//
// C is the caller's type for the data that a hand-over to a waiter needs.
type Queues[C any, G grantType] struct {
	handOvers        int           // maximum number of hand-overs of a key in a row
	pollMin, pollMax time.Duration // shortest and longest pause of other processes between reads

	mu    sync.Mutex
	byKey map[protocol.Key]*queue[C, G] // the keys whose turn is taken
}

// Grant is a key that this client holds. Its methods are called with the mutex of the
// Queues held, so they must not call the Queues.
type Grant interface {
	Age() time.Duration      // time since the key was granted
	IsOver() bool            // reports whether the grant has ended
	Record() protocol.Record // the holder's record, to show to waiters
}

type grantType interface {
	comparable // allows a comparison with the zero value, which means no grant
	Grant
}

// queue is the queue of one key.
type queue[C any, G grantType] struct {
	waiting   []*Waiter[C, G]
	grant     G                // the grant of the goroutine that has the turn; zero before that goroutine has a grant
	reported  *protocol.Record // last reported holder; nil once the key is granted here or the turn is passed on
	before    *protocol.Record // holder that was known in the previous turn, if that turn ended without a grant
	known     bool             // a holder or a grant was reported, so DynamoDB has answered a request for the key
	handOvers int              // number of hand-overs in a row
	longest   time.Duration    // age of the longest grant among these hand-overs
}

// New returns empty queues. A key is handed over at most handOvers times in a row. pollMin
// and pollMax are the bounds of the pauses of other processes.
func New[C any, G grantType](handOvers int, pollMin, pollMax time.Duration) *Queues[C, G] {
	return &Queues[C, G]{handOvers: handOvers, pollMin: pollMin, pollMax: pollMax, byKey: map[protocol.Key]*queue[C, G]{}}
}

// Join puts a waiter in the queue of its key. The first waiter gets its turn at once.
func (l *Queues[C, G]) Join(w *Waiter[C, G]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q, ok := l.byKey[w.Key]
	if !ok {
		l.byKey[w.Key] = &queue[C, G]{}
		w.turns <- Turn[C, G]{Of: w}
		return
	}
	q.waiting = append(q.waiting, w)
	l.tellHolder(q)
}

// Take takes the turn of a key, without a place in the queue. It returns false if the turn
// is already taken.
func (l *Queues[C, G]) Take(key protocol.Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byKey[key] != nil {
		return false
	}
	l.byKey[key] = &queue[C, G]{}
	return true
}

// Leave takes a waiter out of its queue. If the turn of the waiter, or of another waiter
// with the same channel, has already come, Leave returns that turn. The caller must then
// pass it on.
func (l *Queues[C, G]) Leave(w *Waiter[C, G]) (Turn[C, G], bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.left = true
	if q := l.byKey[w.Key]; q != nil {
		q.waiting = slices.DeleteFunc(q.waiting, func(other *Waiter[C, G]) bool { return other == w })
	}
	select {
	case turn := <-w.turns:
		return turn, true
	default:
		return Turn[C, G]{}, false
	}
}

// Holder returns the known holder of the key, in this process or another, or nil if none is
// known.
func (l *Queues[C, G]) Holder(key protocol.Key) *protocol.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q := l.byKey[key]; q != nil {
		return l.holder(q)
	}
	return nil
}

// LastHolder returns Holder or, if that is nil, the holder that was known in the previous
// turn. That holder may have released the key since.
func (l *Queues[C, G]) LastHolder(key protocol.Key) *protocol.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.byKey[key]
	if q == nil {
		return nil
	}
	return cmp.Or(l.holder(q), q.before)
}

// IsKnown reports whether a holder or a grant of the key was reported since the queue
// began. Such a report means that DynamoDB has answered a request for the key.
func (l *Queues[C, G]) IsKnown(key protocol.Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.byKey[key]
	return q != nil && q.known
}

// ReportHolder sets the holder of a key that a goroutine is waiting to acquire, and reports
// the holder to each waiter that has set NoWait.
func (l *Queues[C, G]) ReportHolder(key protocol.Key, holder *protocol.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q := l.byKey[key]; q != nil {
		q.reported, q.before, q.known = holder, nil, true
		l.tellHolder(q)
	}
}

// Granted sets the grant of the goroutine that has the turn. If the grant has ended
// already, the turn is passed on.
func (l *Queues[C, G]) Granted(key protocol.Key, grant G) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q := l.byKey[key]; q != nil {
		l.granted(q, key, grant)
	}
}

// GrantedOutOfTurn sets a grant that did not wait for a turn. A goroutine that has the turn
// continues to wait for the key.
func (l *Queues[C, G]) GrantedOutOfTurn(key protocol.Key, grant G) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byKey[key] == nil {
		q := &queue[C, G]{}
		l.byKey[key] = q
		l.granted(q, key, grant)
	}
}

// Pass ends the turn of a key: the next waiter in the queue gets it. grant must be the
// grant of the goroutine that has the turn, or zero if that goroutine has none yet.
// Otherwise Pass does nothing.
func (l *Queues[C, G]) Pass(key protocol.Key, grant G) { l.PassAfter(key, grant, 0) }

// PassQueued does what Pass does, for a record with a queue. Other processes wait in that
// queue, so they need no time to find the key free.
func (l *Queues[C, G]) PassQueued(key protocol.Key, grant G) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q := l.byKey[key]; q != nil && q.grant == grant {
		q.handOvers, q.longest = 0, 0
		l.pass(q, key, 0)
	}
}

// PassAfter does what Pass does, but the next waiter starts only after delay.
func (l *Queues[C, G]) PassAfter(key protocol.Key, grant G, delay time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q := l.byKey[key]; q != nil && q.grant == grant {
		l.pass(q, key, delay)
	}
}

// holder returns the known holder of the key, or nil. The caller must hold l.mu.
func (l *Queues[C, G]) holder(q *queue[C, G]) *protocol.Record {
	var none G
	if q.grant == none {
		return q.reported
	}
	holder := q.grant.Record()
	return &holder
}

// tellHolder reports the holder, if it is known, to the waiters that have set NoWait. The
// caller must hold l.mu.
func (l *Queues[C, G]) tellHolder(q *queue[C, G]) {
	if len(q.waiting) == 0 {
		return
	}
	holder := l.holder(q)
	if holder == nil {
		return
	}
	q.waiting = slices.DeleteFunc(q.waiting, func(w *Waiter[C, G]) bool {
		if w.NoWait {
			w.held <- holder
			w.left = true
		}
		return w.left
	})
}

// granted sets the grant of the goroutine that has the turn. The caller must hold l.mu.
func (l *Queues[C, G]) granted(q *queue[C, G], key protocol.Key, grant G) {
	q.grant, q.reported, q.before, q.known = grant, nil, nil, true
	l.tellHolder(q)
	if grant.IsOver() {
		l.pass(q, key, 0)
	}
}

// pass gives the turn to the next waiter. A waiter for one of several keys is never handed
// a key: it acquires the key itself. If the key was just released, it does so before any
// other process reads the record. So the turn of such a waiter counts as a hand-over. The
// caller must hold l.mu.
func (l *Queues[C, G]) pass(q *queue[C, G], key protocol.Key, delay time.Duration) {
	var none G
	several := len(q.waiting) > 0 && q.waiting[0].SeeksItself
	if several && q.grant != none {
		q.handOvers++
		q.longest = max(q.longest, q.grant.Age())
	}
	last := q.handOvers >= l.handOvers
	if last {
		delay = max(delay, decide.Pause(q.longest, l.pollMin, l.pollMax, 1))
	}
	if last || !several {
		q.handOvers, q.longest = 0, 0
	}
	q.before = cmp.Or(q.reported, q.before)
	q.grant, q.reported = none, nil
	if len(q.waiting) == 0 {
		delete(l.byKey, key)
		return
	}
	w := q.next()
	w.turns <- Turn[C, G]{Of: w, Delay: delay}
}

// next takes the first waiter out of the queue.
func (q *queue[C, G]) next() *Waiter[C, G] {
	w := q.waiting[0]
	q.waiting = q.waiting[1:]
	return w
}
