package acquire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Result is the outcome of a call to First or All.
type Result struct {
	Held     []Holding    // the granted keys, in the order of wants; All returns one Holding for each key; empty if there is an error
	At       protocol.Key // the key that the error names; unset if there is no error
	Requests int          // the number of requests that the call sent before it returned
	Local    bool         // another goroutine of this client has handed the key to this call
}

// one does the work of First and All for a single key. It first waits in the client's local queue
// for the key, and then polls the key's record until the key is granted.
func (c *Acquirer) one(ctx context.Context, want *Want) (Result, error) {
	began := c.Now()
	given, err := c.awaitTurn(ctx, want, began)
	if err != nil {
		return Result{At: want.Key}, err
	}
	if h := given.granted; h != nil {
		return Result{Held: []Holding{h}, Local: true}, nil
	}
	call := c.newCall(ctx, []*Want{want}, began)
	return call.run(ctx, func() {
		call.parts[0].begin(given)
		call.first()
	})
}

// First acquires one key: the first key in the slice "wants" that becomes free. It waits in the
// local queues of all keys at the same time.
func (c *Acquirer) First(ctx context.Context, wants []*Want) (Result, error) {
	if len(wants) == 1 {
		return c.one(ctx, wants[0])
	}
	call := c.newCall(ctx, wants, c.Now())
	call.turns = make(chan turn, len(wants))
	return call.run(ctx, func() {
		for _, w := range call.parts {
			w.local = newPlace(ctx, w.want, call.turns)
			c.Local.join(w.local)
		}
		call.first()
	})
}

// All acquires all keys in the slice "wants", or none. The slice must be sorted by key.
func (c *Acquirer) All(ctx context.Context, wants []*Want) (Result, error) {
	if len(wants) == 1 {
		return c.one(ctx, wants[0])
	}
	call := c.newCall(ctx, wants, c.Now())
	return call.run(ctx, call.all)
}

// call acquires keys for one caller, on a goroutine of its own. If the caller's context ends while
// a request is in flight, the caller need not wait for the reply: the call's goroutine receives it,
// and then undoes the call's writes.
type call struct {
	c      *Acquirer
	values context.Context // the caller's context without its cancellation, for requests that continue after the caller has stopped waiting
	ctx    context.Context // cancelled when the caller stops waiting
	cancel context.CancelFunc
	done   chan struct{} // closed when the function search has returned; see run
	began  decide.Instant

	parts []*waiter // one waiter for each key, in the order of wants
	turns chan turn // receives the call's turns in the local queues; nil unless this is a call of First with several keys

	requests atomic.Int64 // number of requests sent so far; read by run while the call may still send
	trouble  Trouble
	watched  time.Duration // monotonic time from which the call can take over the keys of all holders that appear dead, if none of them renews; see isWatched
	read     bool          // true once readAhead has read the records of all parts

	undone sync.WaitGroup // counts the goroutines that undo the writes for keys that the call no longer wants

	damaged atomic.Pointer[error] // reason why one of the keys cannot be acquired; also read by the goroutine that called First or All

	mu       sync.Mutex // guards the fields below until done is closed
	waiters  []*waiter  // waiters of the keys that the call waits for now: all keys in a call of First, one key in any other call; the goroutine that writes it reads it without mu
	finished bool
	held     []Holding // keys acquired so far, in the order of parts
	err      error     // why the call has failed; read only after done is closed
}

func (c *Acquirer) newCall(ctx context.Context, wants []*Want, began decide.Instant) *call {
	call := &call{c: c, values: context.WithoutCancel(ctx), done: make(chan struct{}), began: began}
	call.ctx, call.cancel = context.WithCancel(call.values)
	for _, want := range wants {
		call.parts = append(call.parts, call.newWaiter(want))
	}
	call.waiters = call.parts
	return call
}

// run calls search on a new goroutine. It waits until search has returned, ctx ends, or the client
// begins to close. In the last two cases it cancels the call and returns an error, unless the call
// has already finished.
func (w *call) run(ctx context.Context, search func()) (Result, error) {
	c := w.c
	c.Detach(func() {
		defer w.cancel()
		defer close(w.done)
		for _, of := range w.parts {
			c.Observer.Records.Pin(of.want.Key)
			defer c.Observer.Records.Unpin(of.want.Key)
		}
		search()
	})
	var why error
	select {
	case <-w.done:
	case <-ctx.Done():
		why = attempts.Cause(ctx)
	case <-c.Closing.Done():
		why = attempts.Cause(c.Closing)
	}
	if why != nil {
		at, holder := w.waitsFor()
		last := at.lastErr.Load() // before giveUp, which cancels the request in flight
		if held, ok := w.giveUp(); ok {
			w.cleanUp(held)
			return Result{At: at.want.Key, Requests: int(w.requests.Load())},
				c.ended(at.want, holder, w.withDamaged(why), cmp.Or(last, at.lastErr.Load()))
		}
	}
	<-w.done
	if w.err != nil {
		return Result{At: w.waiters[0].want.Key, Requests: int(w.requests.Load())}, w.err
	}
	return Result{Held: w.held, Requests: int(w.requests.Load())}, nil
}

// isAll reports whether the call is to acquire all of several keys.
func (w *call) isAll() bool { return len(w.parts) > 1 && w.turns == nil }

// waitsFor returns the key that the call's error would name if the wait ended now, and the key's
// holder or nil. A call of All names the key that it waits for. Any other call names the first key
// with a known holder, otherwise the first whose last request failed, otherwise its first key.
func (w *call) waitsFor() (*waiter, *protocol.Record) {
	if w.isAll() {
		w.mu.Lock()
		at := w.waiters[0]
		w.mu.Unlock()
		return at, cmp.Or(w.c.Local.LastHolder(at.want.Key), at.holder.Load())
	}
	at := w.parts[0]
	for _, of := range w.parts {
		if r := cmp.Or(of.holder.Load(), w.c.Local.LastHolder(of.want.Key)); r != nil {
			return of, r
		}
		if at.lastErr.Load() == nil && of.lastErr.Load() != nil {
			at = of
		}
	}
	return at, nil
}

// giveUp cancels the call because its caller has stopped waiting, and returns the keys that the
// call holds. If the call has already finished, giveUp does nothing and returns false, and run
// returns the result of the call.
func (w *call) giveUp() (held []Holding, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.finished {
		return nil, false
	}
	w.cancel()
	held, w.held = w.held, nil
	return held, true
}

// cleanUp releases the keys in held. After All, it waits until the call has undone its writes, but
// at most ReleaseGrace. After any other call, it waits only if the lock is without renewal, because
// an AWS Lambda function, for example, may be frozen when the call returns.
func (w *call) cleanUp(held []Holding) {
	switch {
	case w.isAll():
		w.c.AwaitGrace(w.c.detached(func() {
			w.c.keeper.GiveBack(held)
			<-w.done
		}))
	case w.parts[0].want.Manual:
		w.c.AwaitGrace(w.done)
	}
}

// finish marks the call as finished. After that, giveUp has no effect. finish reports whether
// the caller had already stopped waiting.
func (w *call) finish() (givenUp bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.finished = true
	return w.ctx.Err() != nil
}

// isLate reports whether a call with NoWait has waited for answers from DynamoDB for longer
// than TryFor. Time spent observing a holder that appears dead does not count. isLate
// returns false for a call without NoWait.
func (w *call) isLate() bool {
	return w.parts[0].want.NoWait && durations.Less(w.c.Now().Mono, max(w.began.Mono, w.watched)) > TryFor
}

// withDamaged adds the error of a damaged key, if the call has one, to the error with which the
// wait has ended.
func (w *call) withDamaged(why error) error {
	if bad := w.damaged.Load(); bad != nil {
		return errors.Join(why, *bad)
	}
	return why
}

// ended returns the error of a wait that ended before the key was granted. The parameter "why" is
// the reason. The holder is nil if it is not known. The pointer last is nil if the last request
// succeeded.
func (c *Acquirer) ended(want *Want, holder *protocol.Record, why error, last *error) error {
	switch {
	// Return a HeldError that also contains the error of the last request. The holder may have
	// released the key since it was last seen, so the HeldError alone could mislead.
	case holder != nil && last != nil:
		return c.Errors.Held(want.Key, *holder, errors.Join(why, c.Errors.Failed("acquire", want.Key, *last)))
	case holder != nil:
		return c.Errors.Held(want.Key, *holder, why)
	case last != nil:
		return c.Errors.Failed("acquire", want.Key, errors.Join(why, *last))
	}
	return c.Errorf("acquire", want.Key, "%w", why)
}

// ReportEvery is the least time between two reports of failed requests in one wait.
const ReportEvery = time.Minute

// Trouble reports the failed requests of one wait as events: the first failure at once, and then
// at most one failure per ReportEvery. It is not safe for concurrent use.
type Trouble struct {
	since    time.Duration // monotonic time when requests began to fail; zero if the last request had an answer
	reported time.Duration // monotonic time of the last report; zero if there was none
}

// Passed is called when a request has had an answer.
func (t *Trouble) Passed() { t.since = 0 }

// Report emits the event WaitError for a failed request, at most once per ReportEvery. A throttled
// request has an event of its own, so Report reports it only if requests have failed for
// ReportEvery. Refusals and failed conditions are answers, so Report does not report them.
func (t *Trouble) Report(ctx context.Context, c *Acquirer, key protocol.Key, f *attempts.Failure) {
	if f.Cause == decide.Refused || f.Cause == decide.ConditionFailed || ctx.Err() != nil {
		return
	}
	now := c.Now().Mono
	if t.since == 0 {
		t.since = now
	}
	throttled := f.Cause == decide.Busy || f.Cause == decide.Conflict
	if throttled && durations.Less(now, t.since) < ReportEvery || t.reported != 0 && durations.Less(now, t.reported) < ReportEvery {
		return
	}
	t.reported = now
	c.Report(ctx, core.Event{Kind: core.WaitError, Key: key, Err: f.Err})
}

// handOvers is how many times in a row a client may hand a key from one of its goroutines to the
// next. After that the client frees the key, so that other processes can acquire it.
const handOvers = 16

// awaitTurn waits in the local queue of a key for the call's turn, or for a hand-over from another
// goroutine. With NoWait, it gives up once TryFor has passed since began.
func (c *Acquirer) awaitTurn(ctx context.Context, want *Want, began decide.Instant) (turn, error) {
	if c.Local.take(want.Key) {
		return turn{}, nil // no other call of this client waits for the key or holds it
	}
	p := newPlace(ctx, want, nil)
	c.Local.join(p)
	hasTurn := false
	var ended error // reason why the caller stops waiting; still nil in the deferred function if Report panics
	defer func() {
		if !hasTurn {
			c.leavePlace(p, want.Manual && ended != nil)
		}
	}()
	if holder := c.Local.Holder(want.Key); holder != nil {
		c.Report(ctx, core.Event{Kind: core.Waiting, Key: want.Key, Holder: holder})
	}
	var late <-chan time.Time
	if want.NoWait {
		timer := time.NewTimer(began.Add(TryFor).Mono - c.Now().Mono)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case given := <-p.turns:
		hasTurn = true
		return given, nil
	case holder := <-p.held:
		return turn{}, c.Errors.Held(want.Key, *holder, nil)
	case <-ctx.Done():
		ended = attempts.Cause(ctx)
	case <-c.Closing.Done():
		ended = attempts.Cause(c.Closing)
	case <-late:
		ended = fmt.Errorf("gave up after %v behind another call that had no answer from DynamoDB", c.since(began))
	}
	return turn{}, c.ended(want, c.Local.LastHolder(want.Key), ended, nil)
}

// leavePlace removes a call's entry from the local queue. It passes on a turn that the call has not
// received, and releases a key that was handed over. If waits is true, leavePlace waits until this
// is done, but at most for ReleaseGrace: see cleanUp.
func (c *Acquirer) leavePlace(p *Place, waits bool) {
	given, had := c.Local.leave(p)
	if !had {
		return
	}
	passed := c.detached(func() {
		if given.granted != nil {
			c.keeper.GiveBack([]Holding{given.granted})
			return
		}
		c.Local.PassAfter(p.Want.Key, nil, given.delay)
	})
	if waits {
		c.AwaitGrace(passed)
	}
}
