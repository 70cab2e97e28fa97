package localqueue

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Waiter is a goroutine's entry in the local queue of a key.
type Waiter[C any, G grantType] struct {
	Key    protocol.Key
	Caller C
	Wishes

	turns chan Turn[C, G]
	held  chan *protocol.Record
	left  bool // the waiter has left the queue; guarded by Queues.mu
}

// Wishes are the options of a waiter. With the zero Wishes, the waiter stays in the queue
// until its turn comes, and accepts a key that is handed over.
type Wishes struct {
	NoWait     bool // once the holder of the key is known, Queues sends the holder's record to the waiter and removes the waiter from the queue
	NoHandOver bool // no goroutine hands the key to the waiter: the waiter waits for several keys, or could not use the grant of a hand-over
}

// Turn is a message to a waiter: the waiter may now acquire the key, or already holds the key
// by a hand-over.
type Turn[C any, G grantType] struct {
	Of      *Waiter[C, G]
	Granted G             // grant by which the key was handed to the waiter; zero if the waiter must acquire the key
	Delay   time.Duration // how long the waiter pauses first, so that other processes can acquire the key
}

// NewWaiter returns a waiter. The caller must then call Join to add the waiter to the queue.
// Queues sends the waiter's turn on the channel "turns". The channel's buffer must have room for
// one turn of each waiter that uses the channel. If turns is nil, the waiter gets a channel of its
// own.
func (l *Queues[C, G]) NewWaiter(key protocol.Key, caller C, wishes Wishes, turns chan Turn[C, G]) *Waiter[C, G] {
	if turns == nil {
		turns = make(chan Turn[C, G], 1)
	}
	return &Waiter[C, G]{Key: key, Caller: caller, Wishes: wishes, turns: turns, held: make(chan *protocol.Record, 1)}
}

// Turn returns the channel on which Queues sends the waiter's turn, once.
func (w *Waiter[C, G]) Turn() <-chan Turn[C, G] { return w.turns }

// Held returns the channel on which Queues sends the holder of the key if the waiter has
// set NoWait.
func (w *Waiter[C, G]) Held() <-chan *protocol.Record { return w.held }

// Queues contains the local queues of one client, one for each key. It is safe for
// concurrent use.
//
// C is the type of the data about a waiter that a hand-over needs. G is the type of a
// grant.
type Queues[C any, G grantType] struct {
	handOvers        int           // maximum number of hand-overs of a key in a row
	pollMin, pollMax time.Duration // shortest and longest pause between two reads by a waiter in another process

	mu    sync.Mutex
	byKey map[protocol.Key]*queue[C, G] // the queues of the keys for which a goroutine has the turn
}

// Grant is a grant by which a client holds a key. Queues calls the methods of a Grant
// while mu is locked, so these methods must not call methods of Queues.
type Grant interface {
	Age() time.Duration      // time since the key was granted
	IsOver() bool            // reports whether the grant has ended
	Record() protocol.Record // record that shows the grant, to report to waiters
}

type grantType interface {
	comparable // so that a grant can be compared with the zero value, which means no grant
	Grant
}

// queue is the queue of one key, with the goroutine that has the turn.
type queue[C any, G grantType] struct {
	waiting   []*Waiter[C, G]
	grant     G                // grant of the goroutine that has the turn; zero while that goroutine acquires the key
	reported  *protocol.Record // holder that ReportHolder has received in the current turn; nil if there is none, or once the goroutine with the turn has acquired the key
	before    *protocol.Record // last holder that ReportHolder received before the current turn; nil if ReportHolder has received a holder in the current turn, or if a goroutine has acquired the key since
	known     bool             // a goroutine has reported a holder or a grant, so DynamoDB has answered a request for the key
	handOvers int              // number of hand-overs in a row
	longest   time.Duration    // longest time for which a grant lasted before one of these hand-overs
}

// New returns Queues without waiters. handOvers is the maximum number of hand-overs of a
// key in a row. pollMin and pollMax are the shortest and the longest pause between two
// reads by a waiter in another process.
func New[C any, G grantType](handOvers int, pollMin, pollMax time.Duration) *Queues[C, G] {
	return &Queues[C, G]{handOvers: handOvers, pollMin: pollMin, pollMax: pollMax, byKey: map[protocol.Key]*queue[C, G]{}}
}

// Join adds w to the queue of w.Key. If no goroutine has the turn of that key, w gets the turn
// immediately.
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

// Take gives the turn of a key to the calling goroutine, which needs no Waiter. It returns
// false if another goroutine has the turn.
func (l *Queues[C, G]) Take(key protocol.Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byKey[key] != nil {
		return false
	}
	l.byKey[key] = &queue[C, G]{}
	return true
}

// Leave removes w from its queue. If a turn has already been sent on the channel of w, but has
// not been received, Leave returns that turn and true. The caller must then pass the turn on.
// If several waiters share the channel, the returned turn may be the turn of another waiter.
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

// Holder returns the record of the key's holder, in this process or in another process. It
// returns nil if no holder is known.
func (l *Queues[C, G]) Holder(key protocol.Key) *protocol.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q := l.byKey[key]; q != nil {
		return l.holder(q)
	}
	return nil
}

// LastHolder returns the result of Holder or, if that is nil, the holder that was reported last
// before the current turn. The last holder may have released the key since.
func (l *Queues[C, G]) LastHolder(key protocol.Key) *protocol.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.byKey[key]
	if q == nil {
		return nil
	}
	return cmp.Or(l.holder(q), q.before)
}

// IsKnown reports whether a goroutine has reported a holder or a grant of the key since the queue
// was created. If so, DynamoDB has answered a request for the key.
func (l *Queues[C, G]) IsKnown(key protocol.Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.byKey[key]
	return q != nil && q.known
}

// ReportHolder records the holder of a key that a goroutine is trying to acquire. It sends
// this holder to all waiters in the key's queue that have set NoWait, and removes these waiters
// from the queue.
func (l *Queues[C, G]) ReportHolder(key protocol.Key, holder *protocol.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q := l.byKey[key]; q != nil {
		q.reported, q.before, q.known = holder, nil, true
		l.tellHolder(q)
	}
}

// Granted records that the goroutine with the turn has acquired the key by the given grant. If
// the grant has already ended, Granted gives the turn to the next waiter.
func (l *Queues[C, G]) Granted(key protocol.Key, grant G) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q := l.byKey[key]; q != nil {
		l.granted(q, key, grant)
	}
}

// GrantedOutOfTurn is called by a goroutine that has acquired the key without waiting for its turn,
// for example by Resume. It records the grant, and gives the turn to this goroutine. It does
// nothing if another goroutine has the turn.
func (l *Queues[C, G]) GrantedOutOfTurn(key protocol.Key, grant G) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byKey[key] == nil {
		q := &queue[C, G]{}
		l.byKey[key] = q
		l.granted(q, key, grant)
	}
}

// Pass gives the turn of a key to the next waiter in the queue. grant must be the grant of
// the goroutine that has the turn, or zero if that goroutine has not acquired the key. For any
// other grant, Pass does nothing.
func (l *Queues[C, G]) Pass(key protocol.Key, grant G) { l.PassAfter(key, grant, 0) }

// PassQueued does the same as Pass, for a key whose record has a queue. The next waiter gets its
// turn without a delay, because waiters of other processes join the record's queue: they do not
// depend on a delay to acquire the key.
func (l *Queues[C, G]) PassQueued(key protocol.Key, grant G) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q := l.byKey[key]; q != nil && q.grant == grant {
		q.handOvers, q.longest = 0, 0
		l.pass(q, key, 0)
	}
}

// PassAfter does the same as Pass, but the next waiter may send requests only after the given
// delay.
func (l *Queues[C, G]) PassAfter(key protocol.Key, grant G, delay time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q := l.byKey[key]; q != nil && q.grant == grant {
		l.pass(q, key, delay)
	}
}

// holder returns the record of the key's holder, or nil if no holder is known. The caller
// must hold l.mu.
func (l *Queues[C, G]) holder(q *queue[C, G]) *protocol.Record {
	var none G
	if q.grant == none {
		return q.reported
	}
	holder := q.grant.Record()
	return &holder
}

// tellHolder sends the holder to the waiters that have set NoWait, and removes these waiters
// from the queue. It does nothing if no holder is known. The caller must hold l.mu.
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

// granted does the work of Granted. The caller must hold l.mu.
func (l *Queues[C, G]) granted(q *queue[C, G], key protocol.Key, grant G) {
	q.grant, q.reported, q.before, q.known = grant, nil, nil, true
	l.tellHolder(q)
	if grant.IsOver() {
		l.pass(q, key, 0)
	}
}

// pass gives the turn to the next waiter. A waiter with NoHandOver then acquires the key by a grant
// of its own. It usually does so before another process can see that the previous holder has freed
// the key. Other processes are then kept out as by a hand-over, so pass counts such a turn as a
// hand-over. The caller must hold l.mu.
func (l *Queues[C, G]) pass(q *queue[C, G], key protocol.Key, delay time.Duration) {
	var none G
	several := len(q.waiting) > 0 && q.waiting[0].NoHandOver
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

// next removes the first waiter from the queue and returns it.
func (q *queue[C, G]) next() *Waiter[C, G] {
	w := q.waiting[0]
	q.waiting = q.waiting[1:]
	return w
}

// Successor removes the first waiter from the queue of a key and returns it, so that the holder can
// hand the key to this waiter. grant is the holder's grant. The holder's goroutine keeps the turn
// until HandOver is called. Successor returns nil if the holder must release the key instead: if
// the first waiter does not accept a hand-over, if there is no waiter, or if the maximum number of
// hand-overs is reached. The caller sets queued if the record can have a queue for waiters of other
// processes, but the queue is empty. No other process then waits for the key, so the number of
// hand-overs counts from zero again.
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

// HandOver gives the turn and the key to a waiter that Successor has returned. granted is the
// waiter's grant. If granted is the zero grant, the waiter gets only the turn. If the waiter has
// called Leave in the meantime, HandOver does nothing and returns false. The previous holder's
// goroutine then keeps the turn.
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
