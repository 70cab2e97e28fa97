package leasehold

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
)

// anyWaiter is a task that acquires the first of its keys that is free. Acquire waits
// for any of one.
type anyWaiter struct {
	*task
	c       *Client
	waiters []*waiter     // in the order given
	turns   chan turn     // of several keys
	delay   time.Duration // at first, so that other processes can go first
	began   decide.Instant

	damaged atomic.Pointer[RecordError] // why one of the keys cannot be acquired, for the caller
	granted *holding                    // once the task is done; or
	err     error                       // why not
}

// newAnyWaiter returns a task that joins the local lines of all keys.
func (c *Client) newAnyWaiter(ctx context.Context, wants []*request) *anyWaiter {
	w := &anyWaiter{c: c, task: newTask(ctx), began: c.now(), turns: make(chan turn, len(wants))}
	for _, want := range wants {
		of := w.waiter(c, want)
		of.place = c.newLineWaiter(ctx, want, w.turns)
		w.waiters = append(w.waiters, of)
	}
	return w
}

// newOneWaiter returns a task for one key, whose caller has the turn of its local line.
func (c *Client) newOneWaiter(ctx context.Context, want *request, delay time.Duration) *anyWaiter {
	t := newTask(ctx)
	of := t.waiter(c, want)
	of.ready = want.side == nil
	w := t.only(of, c.now())
	w.delay = delay
	return w
}

// only returns what waits for one key of a task.
func (t *task) only(of *waiter, began decide.Instant) *anyWaiter {
	return &anyWaiter{task: t, c: of.c, waiters: []*waiter{of}, began: began}
}

func (w *anyWaiter) run() {
	defer w.cancel()
	defer close(w.done)
	for _, of := range w.waiters {
		of.record.watch()
		defer of.record.unwatch()
	}
	attempts.Wait(w.ctx, w.delay)
	for _, of := range w.waiters {
		if of.place != nil {
			w.c.lines.Join(of.place)
		}
	}
	h, err := w.acquire()
	givenUp := w.finish()
	if h == nil {
		w.err = err
		w.leaveOthers(nil)
		return
	}
	if h.want.side == nil {
		w.c.lines.Granted(h.key, h)
	}
	if !givenUp {
		w.leaveOthers(h)
		w.granted = h
		return
	}
	given := make(chan struct{})
	w.c.detach(func() { // at once, whatever there is to undo for other keys
		defer close(given)
		h.giveBack()
	})
	w.leaveOthers(h)
	<-given
}

// leaveOthers gives up every key but that of h.
func (w *anyWaiter) leaveOthers(h *holding) {
	for _, of := range w.waiters {
		if of.place == nil {
			continue
		}
		if given, had := w.c.lines.Leave(of.place); had { // of this key or another
			w.c.lines.Pass(given.Of.Key, nil)
		}
	}
	for _, of := range w.waiters {
		if h != nil && h.key == of.want.key {
			of.leaveTried()
		} else {
			of.leave()
		}
	}
}

// acquire asks for the keys until one is granted, none can be, or nobody waits.
func (w *anyWaiter) acquire() (*holding, error) {
	for {
		of, err := w.await()
		if err != nil {
			return nil, err
		}
		h, err := of.take()
		if h != nil {
			return h, nil
		}
		if err := w.failed(of, granting, err); err != nil {
			return nil, err
		}
	}
}

// await waits until one of the keys may be asked for, and returns the first. It is the
// one place where a waiter waits. An error ends the waiting.
func (w *anyWaiter) await() (*waiter, error) {
	for {
		w.takeTurns()
		of, p, err := w.first()
		switch {
		case w.ctx.Err() != nil:
			return nil, ErrClosed // nobody reads it
		case of != nil || err != nil:
			return of, err
		}
		if err := w.notAcquired(); err != nil {
			return nil, err
		}
		if w.pause(p.wait) && p.look {
			if err := w.look(); err != nil {
				return nil, err
			}
		}
	}
}

// pause is what to do while no key may be asked for.
type pause struct {
	wait time.Duration
	look bool // after it, read all records
}

// first returns the first key that may be asked for now; nil if there is none.
func (w *anyWaiter) first() (*waiter, pause, error) {
	p := pause{wait: math.MaxInt64}
	var anyLook, repeated bool
	u := w.c.chance() // one for all: the least of many pauses would be too short
	for _, of := range w.candidates() {
		if err := w.failed(of, refreshing, of.refresh()); err != nil {
			return nil, p, err
		}
		if of.dropped != nil {
			continue
		}
		move, wait := of.next(u)
		if move != decide.Look && wait == 0 {
			return of, p, nil
		}
		anyLook = anyLook || move == decide.Look
		if wait = min(wait, of.untilRefresh()); wait < p.wait {
			p, repeated = pause{wait, move == decide.Look}, of.failing != nothing
		}
	}
	// A request that is repeated may take long again: look at the other keys before.
	p.look = p.look || repeated && anyLook
	return nil, p, nil
}

// isLate reports whether a call with NoWait has waited long enough for answers.
func (w *anyWaiter) isLate() bool {
	return w.waiters[0].want.noWait && w.c.now().Mono-w.began.Mono > tryFor
}

// candidates returns the keys whose turn has come, or that need none. While nobody knows
// whether a key was granted there is no other: two could be. A late call with NoWait has
// given up the keys whose last request failed.
func (w *anyWaiter) candidates() []*waiter {
	late := w.isLate()
	var ready []*waiter
	for _, of := range w.waiters {
		switch {
		case of.dropped != nil, of.place != nil && !of.ready, late && of.failing != nothing:
		case of.unclear:
			return []*waiter{of}
		default:
			ready = append(ready, of)
		}
	}
	return ready
}

// failed notes that a request for a key has failed; nil: it has not. An error ends the
// waiting.
func (w *anyWaiter) failed(of *waiter, s step, err error) error {
	if err == nil || attempts.FailureOf(err) != nil || len(w.waiters) == 1 {
		return of.failed(s, err)
	}
	w.drop(of, err)
	return w.noneLeft()
}

// drop leaves out a key that cannot be acquired: it is not there, or damaged. One of the
// others may do.
func (w *anyWaiter) drop(of *waiter, err error) {
	of.dropped, of.ready = err, false
	if bad := (*RecordError)(nil); errors.As(err, &bad) {
		w.damaged.Store(bad)
		w.c.waitFails.warn(w.ctx, w.c, of.want.key, err)
		w.c.emit(w.ctx, Event{Kind: EventWaitError, Key: of.want.key, Err: err})
	}
	w.c.lines.Pass(of.want.key, nil)
}

// noneLeft returns why none of the keys can be acquired, nil while one may be.
func (w *anyWaiter) noneLeft() error {
	var errs []error
	for _, of := range w.waiters {
		if of.dropped == nil {
			return nil
		}
		errs = append(errs, of.dropped)
	}
	return errors.Join(errs...)
}

// withDamaged adds to the error of a wait why another key cannot be acquired.
func (w *anyWaiter) withDamaged(held *HeldError) error {
	if bad := w.damaged.Load(); bad != nil {
		held.Err = errors.Join(held.Err, bad)
	}
	return held
}

// takeTurns takes the turns that have come, without waiting for any.
func (w *anyWaiter) takeTurns() {
	for {
		select {
		case given := <-w.turns:
			w.takeTurn(given)
		default:
			return
		}
	}
}

// takeTurn marks the key of a turn as ready to be acquired.
func (w *anyWaiter) takeTurn(given turn) {
	for _, of := range w.waiters {
		if of.place == given.Of {
			of.ready, of.from = true, w.c.now().Mono+given.Delay
		}
	}
}

// pause waits until a turn has come, but no longer than d. It reports whether d has
// passed.
func (w *anyWaiter) pause(d time.Duration) bool {
	var over <-chan time.Time
	if d < math.MaxInt64 {
		t := time.NewTimer(d)
		defer t.Stop()
		over = t.C
	}
	select {
	case <-over:
		return true
	case given := <-w.turns:
		w.takeTurn(given)
	case <-w.ctx.Done():
	}
	return false
}

// look reads the records of all keys whose turn has come.
func (w *anyWaiter) look() error {
	ready := w.candidates()
	if len(ready) == 1 {
		return w.failed(ready[0], looking, ready[0].look())
	}
	keys := make([]Key, len(ready))
	for i, of := range ready {
		keys[i] = of.want.key
	}
	items, requests, err := w.c.readAll(w.ctx, keys)
	w.requests += requests
	f := attempts.FailureOf(err)
	for _, of := range ready {
		if f != nil {
			err = of.repeat(looking, f)
		} else {
			err = w.failed(of, looking, of.shown(items[of.want.key]))
		}
		if err != nil {
			return err
		}
	}
	if f != nil && f.Cause == decide.Busy { // once, for all of them
		w.c.emit(w.ctx, Event{Kind: EventThrottled, Key: keys[0], Requests: requests, Err: f.Err})
	}
	return nil
}

// notAcquired is the error of a call with NoWait once it has had its answer, or waited
// long enough for one: of the first key that is held, or for which DynamoDB has not
// answered. Nil: it goes on.
func (w *anyWaiter) notAcquired() error {
	late := w.isLate()
	if !w.waiters[0].want.noWait || !late && slices.ContainsFunc(w.waiters, (*waiter).willRepeat) {
		return nil
	}
	unanswered := w.waiters[0]
	for _, of := range w.waiters {
		switch {
		case of.dropped != nil:
			continue
		case of.failing != nothing:
			return of.timeoutError()
		case of.seen != nil:
			return w.withDamaged(of.heldError())
		case of.place != nil && (!of.ready || !late): // it is the turn of another goroutine or another process
			holder := w.c.lines.Holder(of.want.key)
			if holder == nil {
				holder = &Record{Key: of.want.key, Owner: w.c.owner}
			}
			return w.withDamaged(w.c.heldError(of.want.key, *holder, nil))
		}
		unanswered = of // free when last seen, but not granted since
	}
	return unanswered.timeoutError()
}

// waitsFor returns the first key that is known to be held, here or in another process,
// and who holds it. If none is, it returns the first key and nil.
func (w *anyWaiter) waitsFor() (*waiter, *Record) {
	for _, of := range w.waiters {
		if r := of.holder.Load(); r != nil {
			return of, r
		}
		if r := w.c.lines.Holder(of.want.key); r != nil {
			return of, r
		}
	}
	return w.waiters[0], nil
}
