package acquire

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// LocalQueues contains one queue in memory for each key. The goroutines of one client wait in these
// queues. At most one goroutine has the turn of a key: it acquires the key or holds it. The other
// goroutines send no requests. The states of a goroutine:
//
//	      ┌──── the previous holder hands the key over ────┐
//	      │                                                ▼
//	in the queue ─────────────► acquiring ─────────────► holding
//	               its turn         │        granted        │
//	                       gives up │                       │ hands the key over, or its grant ends
//	                                ▼                       ▼
//	                          the next waiter has its turn
//
// Other processes cannot acquire a key while goroutines hand it to each other. So after several
// hand-overs in a row, the holder frees the key, and the next waiter's turn begins with a delay. A
// waiter in another process reads the record at least once during this delay.
//
// LocalQueues is safe for concurrent use. Its methods send no requests and do not block: goroutines
// wait on the channels of their [Place]. The methods Age, IsOver and Record of a Holding are called
// with mu locked, so they must not call methods of LocalQueues.
type LocalQueues struct {
	handOvers        int           // maximum number of hand-overs of a key in a row
	pollMin, pollMax time.Duration // shortest and longest pause between two reads by a waiter in another process

	mu    sync.Mutex
	byKey map[protocol.Key]*localQueue // the queues of the keys for which a goroutine has the turn
}

// localQueue is the queue of one key, with the goroutine that has the turn.
type localQueue struct {
	waiting   []*Place
	grant     Holding          // grant of the goroutine that has the turn; nil while that goroutine acquires the key
	reported  *protocol.Record // holder that ReportHolder has received in the current turn; nil if there is none, or once the goroutine with the turn has acquired the key
	before    *protocol.Record // last holder that ReportHolder received before the current turn; nil if ReportHolder has received a holder in the current turn, or if a goroutine has acquired the key since
	yielded   *protocol.Record // last holder before a turn that began with a delay, until a goroutine has reported a holder or a grant in this turn; nil in any other turn
	known     bool             // a goroutine has reported a holder or a grant, so DynamoDB has answered a request for the key
	handOvers int              // number of hand-overs in a row
	longest   time.Duration    // longest time for which a grant lasted before one of these hand-overs
}

// Place is the entry of a call in the local queue of a key.
type Place struct {
	Ctx  context.Context // context of the call; only its values are used
	Want *Want

	turns chan turn             // receives the call's turn, once; several places of a call may share the channel
	held  chan *protocol.Record // receives the record of the key's holder if the call has set NoWait
	left  bool                  // the call has left the queue; guarded by LocalQueues.mu
}

// turn is a message to a call: the call may now acquire the key, or already holds the key by a
// hand-over.
type turn struct {
	of      *Place
	granted Holding       // holding that was handed to the call; nil if the call must acquire the key
	delay   time.Duration // how long the call pauses first, so that other processes can acquire the key
}

func newLocalQueues(handOvers int, pollMin, pollMax time.Duration) *LocalQueues {
	return &LocalQueues{handOvers: handOvers, pollMin: pollMin, pollMax: pollMax, byKey: map[protocol.Key]*localQueue{}}
}

// newPlace returns a call's entry for the local queue of a key. The channel turns must have a
// buffer for one turn of each place that shares it. If turns is nil, the place gets a channel of
// its own.
func newPlace(ctx context.Context, want *Want, turns chan turn) *Place {
	if turns == nil {
		turns = make(chan turn, 1)
	}
	return &Place{Ctx: ctx, Want: want, turns: turns, held: make(chan *protocol.Record, 1)}
}

// acceptsHandOver reports whether another goroutine may hand the key to the call. It returns false
// for a call for several keys, and for the options Once and Every: a hand-over does not check
// whether the work is done.
func (p *Place) acceptsHandOver() bool { return !p.Want.OneOfSeveral && p.Want.Once.None() }

// join adds p to the queue of its key. If no goroutine has the turn of that key, p gets the turn
// immediately.
func (l *LocalQueues) join(p *Place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q, ok := l.byKey[p.Want.Key]
	if !ok {
		l.byKey[p.Want.Key] = &localQueue{}
		p.turns <- turn{of: p}
		return
	}
	q.waiting = append(q.waiting, p)
	l.tellHolder(q)
}

// take gives the turn of a key to the calling goroutine, which needs no Place. It returns
// false if another goroutine has the turn.
func (l *LocalQueues) take(key protocol.Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byKey[key] != nil {
		return false
	}
	l.byKey[key] = &localQueue{}
	return true
}

// leave removes p from its queue. If the channel of p contains a turn, leave returns it and true,
// and the caller must pass it on. If several places share the channel, the turn may belong to
// another place.
func (l *LocalQueues) leave(p *Place) (turn, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.left = true
	if q := l.byKey[p.Want.Key]; q != nil {
		q.waiting = slices.DeleteFunc(q.waiting, func(other *Place) bool { return other == p })
	}
	select {
	case turn := <-p.turns:
		return turn, true
	default:
		return turn{}, false
	}
}

// Holder returns the record of the key's holder, in this process or in another process. It
// returns nil if no holder is known.
func (l *LocalQueues) Holder(key protocol.Key) *protocol.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q := l.byKey[key]; q != nil {
		return l.holder(q)
	}
	return nil
}

// LastHolder returns the result of Holder. If that is nil, it returns the holder that was last
// reported in an earlier turn, which may have released the key since.
func (l *LocalQueues) LastHolder(key protocol.Key) *protocol.Record {
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
func (l *LocalQueues) IsKnown(key protocol.Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.byKey[key]
	return q != nil && q.known
}

// ReportHolder records the holder of a key that a goroutine is trying to acquire. It also sends
// this holder to the calls with NoWait in the key's queue, and removes these calls from the queue.
func (l *LocalQueues) ReportHolder(key protocol.Key, holder *protocol.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q := l.byKey[key]; q != nil {
		q.reported, q.before, q.yielded, q.known = holder, nil, nil, true
		l.tellHolder(q)
	}
}

// Granted records that the goroutine with the turn has acquired the key by the given grant. If
// the grant has already ended, Granted gives the turn to the next waiter.
func (l *LocalQueues) Granted(key protocol.Key, grant Holding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q := l.byKey[key]; q != nil {
		l.granted(q, key, grant)
	}
}

// GrantedOutOfTurn is called by a goroutine that has acquired the key without waiting for its turn,
// for example by Resume. It records the grant, and gives the turn to this goroutine. It does
// nothing if another goroutine has the turn.
func (l *LocalQueues) GrantedOutOfTurn(key protocol.Key, grant Holding) {
	if l.take(key) {
		l.Granted(key, grant)
	}
}

// Pass gives the turn of a key to the next waiter. It does nothing unless the goroutine with the
// turn holds the key by the given grant. A nil grant means that this goroutine has not acquired the
// key.
func (l *LocalQueues) Pass(key protocol.Key, grant Holding) { l.PassAfter(key, grant, 0) }

// PassQueued is Pass for a key whose record has a queue. It never delays the next waiter: waiters
// of other processes join the record's queue, and need no delay.
func (l *LocalQueues) PassQueued(key protocol.Key, grant Holding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q := l.byKey[key]; q != nil && q.grant == grant {
		q.handOvers, q.longest = 0, 0
		l.pass(q, key, 0)
	}
}

// PassAfter does the same as Pass, but the next waiter may send requests only after the given
// delay.
func (l *LocalQueues) PassAfter(key protocol.Key, grant Holding, delay time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q := l.byKey[key]; q != nil && q.grant == grant {
		l.pass(q, key, delay)
	}
}

// holder returns the record of the key's holder, or nil if no holder is known. The caller
// must hold l.mu.
func (l *LocalQueues) holder(q *localQueue) *protocol.Record {
	if q.grant == nil {
		return q.reported
	}
	holder := q.grant.Record()
	return &holder
}

// tellHolder sends the holder to the queued calls with NoWait, and removes these calls. If no
// holder is known, but the turn began with a delay, it sends the last holder that was known before
// this turn, if any. The caller must hold l.mu.
func (l *LocalQueues) tellHolder(q *localQueue) {
	if len(q.waiting) == 0 {
		return
	}
	holder := cmp.Or(l.holder(q), q.yielded)
	if holder == nil {
		return
	}
	q.waiting = slices.DeleteFunc(q.waiting, func(p *Place) bool {
		if p.Want.NoWait {
			p.held <- holder
			p.left = true
		}
		return p.left
	})
}

// granted does the work of Granted. The caller must hold l.mu.
func (l *LocalQueues) granted(q *localQueue, key protocol.Key, grant Holding) {
	q.grant, q.reported, q.before, q.yielded, q.known = grant, nil, nil, nil, true
	l.tellHolder(q)
	if grant.IsOver() {
		l.pass(q, key, 0)
	}
}

// pass gives the turn to the next waiter. A waiter that accepts no hand-over usually sends a grant
// before other processes see that the key is free. So its turn favours this process as a hand-over
// would, and pass counts it as a hand-over. The caller must hold l.mu.
func (l *LocalQueues) pass(q *localQueue, key protocol.Key, delay time.Duration) {
	several := len(q.waiting) > 0 && !q.waiting[0].acceptsHandOver()
	if several && q.grant != nil {
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
	q.yielded = cmp.Or(l.holder(q), q.yielded)
	if delay <= 0 {
		q.yielded = nil
	}
	q.before = cmp.Or(q.reported, q.before)
	q.grant, q.reported = nil, nil
	if len(q.waiting) == 0 {
		delete(l.byKey, key)
		return
	}
	p := q.next()
	p.turns <- turn{of: p, delay: delay}
}

// next removes the first waiter from the queue and returns it.
func (q *localQueue) next() *Place {
	p := q.waiting[0]
	q.waiting = q.waiting[1:]
	return p
}

// Successor removes and returns the next waiter if the holder may hand the key to it. Otherwise it
// returns nil, and the holder must release the key. The parameter "grant" is the holder's grant.
// The holder keeps the turn until it calls HandOver or, after PutBack, passes the turn.
func (l *LocalQueues) Successor(key protocol.Key, grant Holding, queued bool) *Place {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.byKey[key]
	if q == nil || q.grant != grant {
		return nil
	}
	// Waiters of other processes join the record's queue. A release serves that queue before it
	// calls Successor, so count the hand-overs from zero.
	if queued {
		q.handOvers, q.longest = 0, 0
	}
	q.longest = max(q.longest, grant.Age())
	if q.handOvers >= l.handOvers || len(q.waiting) == 0 || !q.waiting[0].acceptsHandOver() {
		return nil
	}
	q.handOvers++
	return q.next()
}

// PutBack puts a waiter that Successor has returned back to the head of its queue, because the key
// could not be handed to it. It does nothing if the waiter has called leave in the meantime.
func (l *LocalQueues) PutBack(p *Place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !p.left {
		q := l.byKey[p.Want.Key]
		q.waiting = slices.Insert(q.waiting, 0, p)
	}
}

// HandOver gives the turn to a waiter that Successor has returned. Unless granted is nil, the
// waiter also gets the key. If the waiter has called leave meanwhile, HandOver returns false, and
// the previous holder keeps the turn.
func (l *LocalQueues) HandOver(to *Place, granted Holding) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if to.left {
		return false
	}
	q := l.byKey[to.Want.Key]
	q.grant = nil
	if granted != nil {
		l.granted(q, to.Want.Key, granted)
	}
	// Send the turn last, because the waiter may release the new grant as soon as it has
	// received the turn.
	to.turns <- turn{of: to, granted: granted}
	return true
}
