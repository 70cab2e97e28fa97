package leasehold

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// tryFor is how long a call with NoWait repeats requests that have no answer.
const tryFor = 10 * time.Second

// waiter is one key that a task wants: what is known of its record, and what was sent
// to be granted it.
type waiter struct {
	*task
	c      *Client
	want   *request
	record wantedRecord

	place   *lineWaiter   // in the local line; nil: it needs no turn, or has waited for it
	ready   bool          // it has the turn of its local line
	from    time.Duration // monotonic: until then other processes go first
	dropped error         // why the key cannot be acquired; nil: it may be

	tried   attempts.Sequence[attempt]
	unclear bool          // the last attempt has had no answer
	failing step          // that failed last, and has not succeeded since
	retryAt time.Duration // monotonic: until then nothing is repeated
	pauses  attempts.Pauses

	view    decide.View
	seen    *Record  // the record as last shown, if held by another
	session *session // to be granted under, nil for none

	holder  atomic.Pointer[Record] // seen, for the caller
	others  atomic.Int32           // readers beside holder, if they leave no room
	lastErr atomic.Pointer[error]  // why the last request failed, for the caller
}

// wantedRecord is the record that a waiter wants to be granted: that of a lock, or one side
// of a read/write lock's. All but watch, unwatch and due may send a request. An error
// that is no attempts.Failure says why the key cannot be acquired.
type wantedRecord interface {
	watch()                                                        // keeps what is observed of the record,
	unwatch()                                                      // until this
	refresh() error                                                // finds out what the record alone does not show
	due() time.Duration                                            // until it must be refreshed although nothing else is to be done
	observe(item protocol.Item) error                              // notes what a reply has shown
	prepare(over bool) error                                       // makes a grant possible, or a takeover
	grant(over bool) (attempt, *protocol.Write)                    // the next attempt; follows prepare
	shows(item protocol.Item, sent []attempt) (a attempt, ok bool) // the attempt whose grant a record shows
	rejected(r attempts.Result[attempt])                           // notes why a grant was rejected; follows observe
	intents() []attempt                                            // posted, or perhaps posted
	giveUp()                                                       // removes those
}

// waiter returns the waiter for one key of a task, which knows nothing of it yet.
func (t *task) waiter(c *Client, want *request) *waiter {
	w := &waiter{
		task: t, c: c, want: want,
		view:   decide.View{PollMin: c.cfg.PollMin, PollMax: c.cfg.PollMax},
		pauses: c.waitPauses(),
	}
	if want.side == nil {
		w.record = &plainRecord{w}
	} else {
		w.record = newSideRecord(w)
	}
	return w
}

// waitPauses are the pauses between requests of a wait that fail.
func (c *Client) waitPauses() attempts.Pauses {
	return attempts.Pauses{Least: c.cfg.PollMin, Most: 2 * time.Second}
}

// next returns what to do next, and the pause before it; u is uniform in [0,1). After a
// pause look at the clock again: a timer that has fired proves nothing.
func (w *waiter) next(u float64) (decide.Move, time.Duration) {
	if wait := w.pausing(); wait > 0 {
		return decide.Take, wait
	}
	return decide.Next(w.view, w.c.now().Mono, u)
}

// untilRefresh returns the time until refresh is due.
func (w *waiter) untilRefresh() time.Duration {
	if w.pausing() > 0 {
		return math.MaxInt64
	}
	return w.record.due()
}

// pausing returns for how long nothing is sent for the key.
func (w *waiter) pausing() time.Duration {
	return max(w.from, w.retryAt) - w.c.now().Mono
}

// isDead reports whether the holder is dead, so that a grant takes the key over.
func (w *waiter) isDead() bool {
	move, _ := decide.Next(w.view, w.c.now().Mono, 0)
	return move == decide.TakeOver
}

// step is a kind of request that a waiter sends.
type step int

// Values of step.
const (
	nothing    step = iota
	looking         // reads the record
	refreshing      // finds out what the record does not show
	granting        // follows both
)

// succeeded notes that a request has not failed. While the session of a holder cannot
// be read, say, an answer that shows the record shortens no pauses.
func (w *waiter) succeeded(s step) {
	if s == w.failing || s == granting {
		w.failing = nothing
		w.pauses.Reset()
	}
}

// refresh finds out what the record does not show, unless nothing is to be sent now.
func (w *waiter) refresh() error {
	if w.pausing() > 0 {
		return nil
	}
	err := w.record.refresh()
	if err == nil {
		w.succeeded(refreshing)
	}
	return err
}

// failed notes that a request has failed, and when it is repeated; nil: it has not. An
// error ends the waiting.
func (w *waiter) failed(s step, err error) error {
	f := attempts.FailureOf(err)
	if f == nil {
		return err
	}
	if err := w.repeat(s, f); err != nil {
		return err
	}
	if f.Cause == decide.Busy {
		w.c.throttled(w.ctx, w.want.key, 0)(f.Err)
	}
	return nil
}

// repeat decides when a request that has failed is repeated. An error ends the waiting.
func (w *waiter) repeat(s step, f *attempts.Failure) error {
	w.retryAt = w.c.now().Mono + w.c.requests.NextPause(&w.pauses)
	if f.Cause == decide.ConditionFailed {
		return nil // an answer: the key was freed meanwhile
	}
	w.report(f.Err)
	if f.Cause == decide.Refused {
		return opError("acquire", w.c.cfg.Table, w.want.key, f.Err)
	}
	w.failing = s
	return nil
}

// willRepeat reports whether a request is to be repeated.
func (w *waiter) willRepeat() bool { return w.c.now().Mono < w.retryAt }

// report keeps why the last request failed, and reports it now and then.
func (w *waiter) report(err error) {
	w.lastErr.Store(&err)
	w.trouble.report(w.ctx, w.c, w.want.key, err)
}

// timeoutError is the error of a call with NoWait that has had no answer.
func (w *waiter) timeoutError() error {
	err := fmt.Errorf("gave up after %v", tryFor)
	if last := w.lastErr.Load(); last != nil {
		err = fmt.Errorf("%w: %w", err, *last)
	}
	return opError("acquire", w.c.cfg.Table, w.want.key, err)
}

// heldError is the error of a call with NoWait whose key is held.
func (w *waiter) heldError() *HeldError {
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
	return w.shown(item)
}

// shown notes what a look has shown.
func (w *waiter) shown(item protocol.Item) error {
	err := w.observe(item)
	if err == nil {
		w.succeeded(looking)
	}
	return err
}

// observe notes what a reply has shown.
func (w *waiter) observe(item protocol.Item) error {
	w.trouble.passed()
	return w.record.observe(item)
}

// decode reads an item as a record; of a read/write lock, the entry of a grant.
func (w *waiter) decode(grant string, item protocol.Item) (Record, error) {
	r, err := w.want.protoOf(w.c, grant).Decode(item)
	if err != nil {
		return Record{}, w.c.recordError(w.want.key, item, err)
	}
	return recordOf(r), nil
}

// take sends one grant. A holding ends the waiting. Without one and without an error
// somebody else has the key.
func (w *waiter) take() (*holding, error) {
	over := w.isDead()
	if err := w.record.prepare(over); errors.Is(err, errSessionLives) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	w.requests++
	r := w.tried.Try(context.WithoutCancel(w.ctx), w.c.requests, attempts.Operation[attempt]{
		Key:    protocol.Key(w.want.key),
		Next:   func() (attempt, *protocol.Write) { return w.record.grant(over) },
		Within: w.want.grantWithin(w.session),
		Shows:  w.record.shows,
	})
	w.leaveOldest()
	w.unclear = false
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
		if err := w.observeRejection(r.Item); err != nil {
			return nil, err
		}
		w.record.rejected(r)
		if w.view.Free {
			return nil, r.Failure() // it is free by now: try again
		}
		w.succeeded(granting)
		return nil, nil
	}
	w.unclear = len(w.tried.Versions()) > 0
	return nil, r.Failure()
}

// observeRejection observes the record that made a grant of ours fail.
func (w *waiter) observeRejection(item protocol.Item) error {
	if item == nil && w.want.ifExists {
		return fmt.Errorf("%w: %v in table %s: IfExists acquires only a record that is there", ErrNotFound, w.want.key, w.c.cfg.Table)
	}
	return w.observe(item)
}

// isOurs reports whether a version is an attempt of ours that nobody holds.
func (w *waiter) isOurs(version string) bool {
	return w.c.isUnsettled(w.want.key, version) || slices.Contains(w.tried.Versions(), version)
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

// newHolding makes a holding of a grant.
func (w *waiter) newHolding(a attempt, r Record) *holding {
	w.tried.Drop(a.version)
	w.c.observer.Records.Forget(protocol.Key(w.want.key))
	h := w.c.newHolding(w.ctx, w.want, a, r)
	h.took = a.dead
	return h
}

// leaveTried leaves to the client the attempts without an answer: one may still be
// applied, once the key is free again. It returns those to be granted the key.
func (w *waiter) leaveTried() []attempt {
	tried := w.tried.Unanswered()
	w.c.leaveUnsettled(w.want.key, attempts.Versions(append(slices.Clip(tried), w.record.intents()...)))
	return tried
}

// leave gives up the key: what attempts without an answer may have taken is freed, and
// the next in the local line gets the turn.
func (w *waiter) leave() {
	tried := w.leaveTried()
	if w.ready {
		w.ready = false
		w.c.lines.PassAfter(w.want.key, nil, w.from-w.c.now().Mono)
	}
	undo := func() {
		w.c.freeUnsettled(w.ctx, w.want, tried)
		w.record.giveUp()
	}
	if w.want.manual { // then nothing may be left in the background
		undo()
	} else {
		w.c.detach(undo)
	}
}
