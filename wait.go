package leasehold

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// tryFor is how long a call with NoWait repeats requests that have no answer.
const tryFor = 10 * time.Second

// waiter acquires one key for one Acquire call, from the moment the call has its
// turn in the local line. It runs on a goroutine of its own. So the call can return
// at once when its context ends, and the waiter undoes what it has sent.
type waiter struct {
	c     *Client
	want  *request
	delay time.Duration // at first, so that other processes can go first

	tried    attempts.Sequence[attempt]
	requests int
	view     decide.View
	seen     *Record       // the record as last shown, if held by another
	rw       readWriteView // of a read/write lock

	session *session // to be granted under, nil for none

	holder  atomic.Pointer[Record] // seen, for the caller
	others  atomic.Int32           // readers beside holder, if they leave no room
	lastErr atomic.Pointer[error]

	*task
	granted *holding // or
	err     error    // once the task is done
}

func newWaiter(ctx context.Context, c *Client, want *request, delay time.Duration) *waiter {
	w := newTask(ctx).waiter(c, want)
	w.delay, w.rw.due = delay, c.now().Mono
	return w
}

// waiter returns the waiter for one key of a task, which knows nothing of it yet.
func (t *task) waiter(c *Client, want *request) *waiter {
	return &waiter{c: c, want: want, task: t, view: c.unknownView()}
}

// unknownView is what a waiter knows of a key before any reply.
func (c *Client) unknownView() decide.View {
	return decide.View{PollMin: c.cfg.PollMin, PollMax: c.cfg.PollMax}
}

// task is what a goroutine of its own does for a call.
type task struct {
	ctx    context.Context // ends when nobody waits; carries the caller's values
	cancel context.CancelFunc
	done   chan struct{} // closed when there is a result

	mu       sync.Mutex // guards the next two
	givenUp  bool
	finished bool

	trouble trouble // of the goroutine that does it
}

func newTask(ctx context.Context) *task {
	t := &task{done: make(chan struct{})}
	t.ctx, t.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return t
}

// giveUp tells the task that nobody waits for it any more. False: it has finished
// already, and its result stands.
func (t *task) giveUp() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.finished {
		return false
	}
	t.givenUp = true
	t.cancel()
	return true
}

// finish ends the task. It reports whether nobody waits for its result any more.
func (t *task) finish() (givenUp bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.finished = true
	return t.givenUp
}

func (w *waiter) run() {
	defer w.cancel()
	defer close(w.done)
	w.c.observed.Watch(w.want.key)
	defer w.c.observed.Unwatch(w.want.key)
	w.rw.entries.Of = w.c.entries
	defer w.rw.entries.Only()
	attempts.Wait(w.ctx, w.delay)
	h, err := w.acquire()
	givenUp := w.finish()
	// An attempt without an answer may still be applied, once the key is free again.
	tried := w.tried.Unanswered()
	w.c.leaveUnsettled(w.want.key, attempts.Versions(append(slices.Clip(tried), w.rw.intents...)))
	if h == nil {
		w.err = err
		if w.want.side == nil {
			w.c.lines.Pass(w.want.key, nil)
		}
		undo := func() {
			w.c.freeUnsettled(w.ctx, w.want, tried)
			w.removeIntent(w.ctx)
		}
		if givenUp || w.want.manual {
			undo()
		} else {
			w.c.detach(undo) // the caller need not wait for it
		}
		return
	}
	if w.want.side == nil {
		w.c.lines.Granted(h.key, h)
	}
	if givenUp {
		h.giveBack()
		return
	}
	w.granted = h
}

// acquire asks for the key until it is granted, refused, or nobody waits.
func (w *waiter) acquire() (*holding, error) {
	began := w.c.now()
	w.view = w.c.unknownView()
	pauses := w.c.waitPauses()
	for {
		h, err := w.step()
		switch {
		case h != nil:
			return h, nil
		case err == nil:
			pauses.Reset()
			continue
		}
		if err := w.pauseAfter(err, began, &pauses); err != nil {
			return nil, err
		}
	}
}

// step pauses, and then reads the record or sends a grant. An error that is no
// attempts.Failure ends the waiting.
func (w *waiter) step() (*holding, error) {
	if err := w.watchSession(); err != nil {
		return nil, err
	}
	if err := w.postIntent(); err != nil {
		return nil, err
	}
	move, wait := decide.Next(w.view, w.c.now().Mono, w.c.chance())
	if w.want.noWait && (move == decide.Look || wait > 0) {
		return nil, w.heldError()
	}
	attempts.Wait(w.ctx, min(wait, w.untilIntent()))
	switch {
	case w.ctx.Err() != nil:
		return nil, ErrClosed // nobody reads it
	case move == decide.TakeOver && wait > 0:
		return nil, nil // a fired timer proves nothing: look at the clock again
	case move == decide.Look:
		return nil, w.look()
	}
	return w.take(move == decide.TakeOver)
}

// waitPauses are the pauses between a waiter's requests that fail.
func (c *Client) waitPauses() attempts.Pauses {
	return attempts.Pauses{Least: c.cfg.PollMin, Most: 2 * time.Second}
}

// pauseAfter pauses after a request that has failed, longer each time. An error
// ends the waiting.
func (w *waiter) pauseAfter(err error, began decide.Instant, pauses *attempts.Pauses) error {
	f := attempts.FailureOf(err)
	if f == nil {
		return err
	}
	w.requestFailed(f.Err)
	if f.Cause == decide.Refused {
		return opError("acquire", w.c.cfg.Table, w.want.key, f.Err)
	}
	if f.Cause == decide.Busy {
		w.c.throttled(w.ctx, w.want.key, 0)(f.Err)
	}
	if w.want.noWait && w.c.now().Mono-began.Mono > tryFor {
		return w.timeoutError()
	}
	if !w.c.requests.Pause(w.ctx, pauses) {
		return ErrClosed // nobody reads it
	}
	return nil
}

// timeoutError is the error of a call with NoWait that has had no answer.
func (w *waiter) timeoutError() error {
	err := fmt.Errorf("gave up after %v", tryFor)
	if last := w.lastErr.Load(); last != nil {
		err = fmt.Errorf("%w: %w", err, *last)
	}
	return opError("acquire", w.c.cfg.Table, w.want.key, err)
}

// requestFailed records why the last request failed, and reports it now and then.
func (w *waiter) requestFailed(err error) {
	w.lastErr.Store(&err)
	w.trouble.report(w.ctx, w.c, w.want.key, err)
}

func (w *waiter) heldError() error {
	held := w.c.heldError(w.want.key, *w.seen, nil)
	held.others = int(w.others.Load())
	return held
}

// look reads the record once.
func (w *waiter) look() error {
	w.requests++
	item, err := w.c.requests.Read(w.ctx, protocol.Key(w.want.key))
	if err != nil {
		return err
	}
	return w.observe(item)
}

// decode reads an item as a record; of a read/write lock, the entry of a grant.
func (w *waiter) decode(grant string, item protocol.Item) (Record, error) {
	r, err := w.want.protoOf(w.c, grant).Decode(item)
	if err != nil {
		return Record{}, w.c.recordError(w.want.key, item, err)
	}
	return recordOf(r), nil
}

// errSessionLives is why a holder is not taken over: its session has been renewed.
var errSessionLives = errors.New("the holder's session lives")

// ready prepares for a grant. It makes sure that the session of a holder to be taken
// over is dead, and begins one for this client if its locks share one.
func (w *waiter) ready(over bool) error {
	if w.want.side != nil {
		return nil // locks of readers and writers are renewed one by one
	}
	if over {
		if err := w.endSession(); err != nil {
			return err
		}
	}
	session, err := w.c.session(w.ctx)
	w.session = session
	return err
}

// next returns the next attempt to be granted, and its write. It follows ready.
func (w *waiter) next(over bool) (attempt, *protocol.Write) {
	if w.want.side != nil {
		return w.nextSide(over)
	}
	a := w.c.newAttempt(w.want.timing.Lease).under(w.session)
	if over {
		a.dead = w.deadHolder()
	}
	g := w.c.grantOf(w.want, a)
	g.Takeable = w.tried.Versions()
	switch {
	case over && w.view.Ours:
		g.Takeable = append(g.Takeable, w.seen.Version)
	case over:
		g.Dead = []protocol.Record{w.seen.protocol()}
	}
	return a, w.c.proto.Grant(g)
}

// take sends one grant. A holding ends the waiting, and so does an error that is no
// attempts.Failure.
func (w *waiter) take(over bool) (*holding, error) {
	if err := w.ready(over); errors.Is(err, errSessionLives) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	w.requests++
	r := w.tried.Try(context.WithoutCancel(w.ctx), w.c.requests, attempts.Operation[attempt]{
		Key:    protocol.Key(w.want.key),
		Next:   func() (attempt, *protocol.Write) { return w.next(over) },
		Within: w.want.grantWithin(w.session),
		Shows:  w.shows,
	})
	w.leaveOldest()
	switch r.Outcome {
	case attempts.Applied:
		record, err := w.decode(r.Attempt.version, r.Item)
		if err != nil {
			w.addUnanswered(r.Attempt) // it was applied, but what a grant leaves in place is damaged
			return nil, err
		}
		if !r.Earlier {
			w.c.sweep(w.ctx, w.want, r.Item)
		}
		return w.newHolding(r.Attempt, record), nil
	case attempts.Rejected:
		return nil, w.rejected(r)
	}
	return nil, r.Failure()
}

// shows returns the attempt whose grant a record shows: one delivered twice, or an
// earlier one without an answer. At least half of its trust must be left.
func (w *waiter) shows(item protocol.Item, sent []attempt) (attempt, bool) {
	if item == nil {
		return attempt{}, false
	}
	if w.want.side != nil {
		return w.showsSide(item, sent)
	}
	r, err := w.c.decode(w.want.key, item)
	a, ok := attempts.Find(sent, r.Version)
	return a, ok && err == nil && !r.Released && a.isWorthHaving(w.want.timing, w.c.now())
}

// rejected looks at the record that made a grant of ours fail.
func (w *waiter) rejected(r attempts.Result[attempt]) error {
	if err := w.observeRejection(r.Item); err != nil {
		return err
	}
	if w.want.side != nil {
		w.noteSpent(r)
	} else if w.seen != nil && w.seen.Version == r.Attempt.version {
		w.view.Ours = true
	}
	if w.view.Free {
		return r.Failure() // it is free by now: try again
	}
	return nil
}

// observeRejection observes the record that made a grant of ours fail.
func (w *waiter) observeRejection(item protocol.Item) error {
	if item == nil && w.want.ifExists {
		return fmt.Errorf("%w: %v in table %s: IfExists acquires only a record that is there", ErrNotFound, w.want.key, w.c.cfg.Table)
	}
	return w.observe(item)
}

// observe records what a reply has shown.
func (w *waiter) observe(item protocol.Item) error {
	w.trouble.passed()
	if w.want.side != nil {
		return w.observeEntries(item)
	}
	now := w.c.now()
	w.view.Known, w.view.Free, w.view.Ours = true, true, false
	r, v, err := w.c.observe(w.want.key, item, now)
	if err != nil {
		return err
	}
	if r == nil {
		w.seen = nil
		return nil
	}
	w.view.Free = false
	w.view.Ours = w.c.isUnsettled(w.want.key, r.Version) || slices.Contains(w.tried.Versions(), r.Version)
	w.view.Grant, w.view.Dead = v.Granted, w.c.deadAt(*r, v, now, time.Now())
	changed := w.seen == nil || grantIDOf(*w.seen) != grantIDOf(*r)
	w.seen = r
	w.holder.Store(r)
	if changed && !w.view.Ours {
		w.c.lines.ReportHolder(w.want.key, r)
		w.c.emit(w.ctx, Event{Kind: EventWaiting, Key: w.want.key, Holder: r})
	}
	return nil
}

// addUnanswered remembers an attempt whose effect is not known.
func (w *waiter) addUnanswered(a attempt) {
	w.tried.Add(a)
	w.leaveOldest()
}

// leaveOldest leaves the oldest attempts to the client if there are too many to be
// named in every condition. If one of them turns out to hold the key, it is taken
// over at once.
func (w *waiter) leaveOldest() {
	if old := w.tried.Keep(attempts.MostUnanswered); len(old) > 0 {
		w.c.leaveUnsettled(w.want.key, attempts.Versions(old))
	}
}

// deadHolder returns the dead holder that a takeover replaces. If the record shows an
// attempt of our own, that is the holder which that attempt has replaced.
func (w *waiter) deadHolder() *Record {
	if !w.view.Ours {
		return w.seen
	}
	a, _ := w.tried.Find(w.seen.Version)
	return a.dead
}

// newHolding makes a holding of a grant.
func (w *waiter) newHolding(a attempt, r Record) *holding {
	w.tried.Drop(a.version)
	w.c.observed.Forget(w.want.key)
	h := w.c.newHolding(w.ctx, w.want, a, r)
	h.took = a.dead
	return h
}
