package leasehold

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
)

// AcquireAny acquires one of keys: the first in the order given that is free. While
// none is free it watches them all, with one read for up to 100 of them. Options apply to every key. With NoWait the error is a *HeldError of the first
// key that is held.
//
// A key that ctx holds already is left out, unless Reentrant is given, which
// shares that grant. Without NoWait, a key that sorts below a key of a Group that
// ctx belongs to could make it wait for ever. If no other key is left, the error is
// ErrDeadlock.
func (c *Client) AcquireAny(ctx context.Context, keys []Key, opts ...AcquireOption) (*Lock, error) {
	wants, err := c.newRequests(keys, opts)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("leasehold: acquire one of %v and others: %w", wants[0].key, context.Cause(ctx))
	}
	var seek []*request
	var deadlock error
	neverFree := true
	for _, want := range wants {
		h := heldKeysOf(ctx).find(c, want.key)
		if h == nil {
			err := checkOrder(ctx, c, want)
			seek, deadlock = append(seek, want), errors.Join(deadlock, err)
			neverFree = neverFree && err != nil
			continue
		}
		err := h.refuses(want)
		if err == nil {
			return h.share(ctx, want)
		}
		deadlock = errors.Join(deadlock, err)
	}
	if neverFree {
		return nil, deadlock
	}
	if !c.enter() {
		return nil, ErrClosed
	}
	defer c.leave()
	c.waiting.Add(1)
	defer c.waiting.Add(-1)
	began := c.now()
	w := newAnyWaiter(ctx, c, seek)
	c.detach(w.run)
	if ended := c.await(ctx, w.done); ended != nil {
		at, holder := w.waitsFor()
		if w.giveUp() {
			c.cleanUp(seek[0], w.done)
			err := w.withBadRecord(c.waitEnded(at.want, holder, ended, at.lastErr.Load()))
			c.emitGaveUp(ctx, at.want.key, began, 0, err)
			return nil, err
		}
	}
	<-w.done
	if w.err != nil {
		c.emitGaveUp(ctx, seek[0].key, began, w.requests(), w.err)
		return nil, w.err
	}
	return c.granted(ctx, w.granted, began, w.requests(), false)
}

// anyWaiter acquires one of several keys for one AcquireAny call. Like a waiter it
// runs on a goroutine of its own.
type anyWaiter struct {
	badRecord  atomic.Pointer[RecordError] // why one of the keys cannot be acquired
	c          *Client
	candidates []*candidate // in the order given
	turns      chan turn
	reads      int

	*task
	granted *holding // or
	err     error    // once the task is done
}

// candidate is one of the keys. It is acquired only in the turn of its local line.
type candidate struct {
	*waiter
	place *lineWaiter   // in the local line
	ready bool          // has its turn
	from  time.Duration // monotonic: until then other processes go first
	err   error         // why it cannot be acquired
}

func newAnyWaiter(ctx context.Context, c *Client, wants []*request) *anyWaiter {
	w := &anyWaiter{c: c, task: newTask(ctx), turns: make(chan turn, len(wants))}
	for _, want := range wants {
		want.oneOfSeveral = true
		w.candidates = append(w.candidates, &candidate{waiter: w.waiter(c, want), place: c.newLineWaiter(ctx, want, w.turns)})
	}
	return w
}

// waitsFor returns the first key that is known to be held, here or in another
// process, and who holds it. If none is, it returns the first key and nil.
func (w *anyWaiter) waitsFor() (*candidate, *Record) {
	for _, cand := range w.candidates {
		if r := cand.holder.Load(); r != nil {
			return cand, r
		}
		if r := w.c.lines.Holder(cand.want.key); r != nil {
			return cand, r
		}
	}
	return w.candidates[0], nil
}

func (w *anyWaiter) requests() int {
	n := w.reads
	for _, cand := range w.candidates {
		n += cand.requests
	}
	return n
}

func (w *anyWaiter) run() {
	defer w.cancel()
	defer close(w.done)
	for _, cand := range w.candidates {
		w.c.observed.Watch(cand.want.key)
		defer w.c.observed.Unwatch(cand.want.key)
	}
	for _, cand := range w.candidates {
		w.c.lines.Join(cand.place)
	}
	h, err := w.acquire()
	givenUp := w.finish()
	if h == nil {
		w.err = err
		w.giveUpOthers(nil)
		return
	}
	w.c.lines.Granted(h.key, h)
	if !givenUp {
		w.giveUpOthers(h)
		w.granted = h
		return
	}
	given := make(chan struct{})
	w.c.detach(func() { // at once, whatever there is to undo for other keys
		defer close(given)
		h.giveBack()
	})
	w.giveUpOthers(h)
	<-given
}

// giveUpOthers gives up every key but that of h, and frees what attempts without an
// answer may have taken.
func (w *anyWaiter) giveUpOthers(h *holding) {
	for _, cand := range w.candidates {
		if given, had := w.c.lines.Leave(cand.place); had { // of this key or another
			w.c.lines.Pass(given.Of.Key, nil)
		}
	}
	for _, cand := range w.candidates {
		tried := cand.tried.Unanswered()
		w.c.leaveUnsettled(cand.want.key, attempts.Versions(tried))
		if h != nil && h.key == cand.want.key {
			continue
		}
		if cand.ready {
			w.c.lines.PassAfter(cand.want.key, nil, cand.from-w.c.now().Mono)
		}
		undo := func() { w.c.freeUnsettled(w.ctx, cand.want, tried) }
		if cand.want.manual { // then nothing may be left in the background
			undo()
		} else {
			w.c.detach(undo)
		}
	}
}

// acquire asks for the keys until one is granted, none can be, or nobody waits.
func (w *anyWaiter) acquire() (*holding, error) {
	began := w.c.now()
	pauses := w.c.waitPauses()
	for {
		w.takeTurns()
		h, next, err := w.takeFirst()
		if h != nil || err != nil {
			return h, err
		}
		if err := w.noneLeft(); err != nil {
			return nil, err
		}
		if next.failed {
			next.wait = min(next.wait, w.c.requests.NextPause(&pauses))
		} else {
			pauses.Reset()
		}
		if late := w.c.now().Mono-began.Mono > tryFor; w.noWait() && (late || !next.failed && next.wait > 0) {
			return nil, w.notAcquired(late)
		}
		if w.waitForTurn(next.wait) && next.look {
			if err := w.look(); err != nil {
				return nil, err
			}
		}
		if w.ctx.Err() != nil {
			return nil, ErrClosed // nobody reads it
		}
	}
}

func (w *anyWaiter) noWait() bool { return w.candidates[0].want.noWait }

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
	for _, cand := range w.candidates {
		if cand.place == given.Of {
			cand.ready, cand.from = true, w.c.now().Mono+given.Delay
		}
	}
}

// waitForTurn waits until a turn has come, but no longer than d. It reports whether
// d has passed.
func (w *anyWaiter) waitForTurn(d time.Duration) bool {
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

// next is what to do when no key was free.
type next struct {
	wait   time.Duration
	look   bool // after wait, read all records; otherwise try to take a key
	failed bool // a request has failed and is repeated
}

// takeFirst takes the first key that may be taken now.
func (w *anyWaiter) takeFirst() (*holding, next, error) {
	n := next{wait: math.MaxInt64}
	u := w.c.chance()
	for _, cand := range w.candidates {
		now := w.c.now().Mono
		if !cand.ready || w.ctx.Err() != nil {
			continue
		}
		if ok, err := w.watchSession(cand, &n); err != nil {
			return nil, n, err
		} else if !ok {
			continue
		}
		move, wait := decide.Next(cand.view, now, u)
		if now < cand.from {
			move, wait = decide.Take, cand.from-now
		}
		if move == decide.Look || wait > 0 {
			if wait < n.wait {
				n.wait, n.look = wait, move == decide.Look
			}
			continue
		}
		h, failed, err := w.takeUntilAnswered(cand)
		if h != nil || err != nil {
			return h, n, err
		}
		n.failed = n.failed || failed
		if failed || !cand.ready {
			continue
		}
		if ok, err := w.watchSession(cand, &n); err != nil { // of the holder just met
			return nil, n, err
		} else if !ok {
			continue
		}
		if move, wait := decide.Next(cand.view, w.c.now().Mono, u); wait < n.wait {
			n.wait, n.look = wait, move == decide.Look
		}
	}
	return nil, n, nil
}

// watchSession finds out until when a session keeps the holder of a key alive.
// False: the session could not be read, or the key is dropped.
func (w *anyWaiter) watchSession(cand *candidate, n *next) (bool, error) {
	err := cand.watchSession()
	f := attempts.FailureOf(err)
	switch {
	case err == nil:
		return true, nil
	case f == nil: // damaged: one of the others may do
		w.drop(cand, err)
		return false, nil
	case f.Cause == decide.Refused:
		return false, opError("acquire", w.c.cfg.Table, cand.want.key, f.Err)
	}
	cand.requestFailed(f.Err)
	n.failed, n.wait = true, min(n.wait, w.c.cfg.PollMax)
	return false, nil
}

// takeUntilAnswered stays with one key until it is known whether it was granted. If
// it tried the next one while the effect of a grant is unknown, it could end up
// with two keys.
func (w *anyWaiter) takeUntilAnswered(cand *candidate) (h *holding, failed bool, err error) {
	began := w.c.now()
	pauses := w.c.waitPauses()
	for {
		move, _ := decide.Next(cand.view, w.c.now().Mono, 0)
		h, err := cand.take(move == decide.TakeOver)
		f := attempts.FailureOf(err)
		switch {
		case h != nil:
			return h, false, nil
		case err == nil: // held, or its holder's session lives
			return nil, false, nil
		case f == nil: // not there, or damaged: one of the others may do
			w.drop(cand, err)
			return nil, false, nil
		case f.Cause == decide.ConditionFailed:
			return nil, false, nil
		}
		cand.requestFailed(f.Err)
		switch f.Cause {
		case decide.Refused:
			return nil, false, opError("acquire", w.c.cfg.Table, cand.want.key, f.Err)
		case decide.Busy:
			w.c.throttled(w.ctx, cand.want.key, 0)(f.Err)
		}
		if len(cand.tried.Versions()) == 0 { // it was not asked for yet, or not granted for sure
			return nil, true, nil
		}
		if w.noWait() && w.c.now().Mono-began.Mono > tryFor {
			return nil, true, nil
		}
		if !w.c.requests.Pause(w.ctx, &pauses) {
			return nil, true, nil
		}
	}
}

// drop leaves out a key that cannot be acquired.
func (w *anyWaiter) drop(cand *candidate, err error) {
	cand.err, cand.ready = err, false
	if bad := (*RecordError)(nil); errors.As(err, &bad) {
		w.badRecord.Store(bad)
		w.c.waitFails.warn(w.ctx, w.c, cand.want.key, err)
		w.c.emit(w.ctx, Event{Kind: EventWaitError, Key: cand.want.key, Err: err})
	}
	w.c.lines.Pass(cand.want.key, nil)
}

// withBadRecord adds to the error of a wait why another key cannot be acquired.
func (w *anyWaiter) withBadRecord(err error) error {
	held, ok := err.(*HeldError) // made just now, never wrapped
	if bad := w.badRecord.Load(); ok && bad != nil {
		held.Err = errors.Join(held.Err, bad)
	}
	return err
}

// noneLeft returns why none of the keys can be acquired, nil while one may be.
func (w *anyWaiter) noneLeft() error {
	var errs []error
	for _, cand := range w.candidates {
		if cand.err == nil {
			return nil
		}
		errs = append(errs, cand.err)
	}
	return errors.Join(errs...)
}

// notAcquired is the error with NoWait: of the first key that is held, or for which
// DynamoDB has not answered. late says that it has waited long enough for answers.
func (w *anyWaiter) notAcquired(late bool) error {
	unanswered := w.candidates[0]
	for _, cand := range w.candidates {
		switch {
		case cand.err != nil:
			continue
		case cand.seen != nil:
			return w.withBadRecord(cand.heldError())
		case !cand.ready || !late: // it is the turn of another goroutine or another process
			holder := w.c.lines.Holder(cand.want.key)
			if holder == nil {
				holder = &Record{Key: cand.want.key, Owner: w.c.owner}
			}
			return w.withBadRecord(w.c.heldError(cand.want.key, *holder, nil))
		case cand.lastErr.Load() != nil:
			return cand.timeoutError()
		}
		unanswered = cand // free when last seen, but not granted since
	}
	return unanswered.timeoutError()
}

// look reads the records of all keys whose turn has come.
func (w *anyWaiter) look() error {
	var keys []Key
	for _, cand := range w.candidates {
		if cand.ready {
			keys = append(keys, cand.want.key)
		}
	}
	items, requests, err := w.c.readAll(w.ctx, keys)
	f := attempts.FailureOf(err)
	w.reads += requests
	for _, cand := range w.candidates {
		switch {
		case !cand.ready:
		case f != nil:
			cand.requestFailed(f.Err)
		default:
			if err := cand.observe(items[cand.want.key]); err != nil {
				w.drop(cand, err)
			}
		}
	}
	switch {
	case f == nil:
	case f.Cause == decide.Refused:
		return opError("acquire", w.c.cfg.Table, keys[0], f.Err)
	case f.Cause == decide.Busy:
		w.c.emit(w.ctx, Event{Kind: EventThrottled, Key: keys[0], Requests: requests, Err: f.Err})
	}
	return nil
}
