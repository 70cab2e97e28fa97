package seek

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// anyWaiter is a task that acquires the first of its keys that is free. Acquire waits
// for any of one.
type anyWaiter struct {
	*task
	c       *Client
	waiters []*waiter     // in the order given
	turns   chan turn     // for the turns of several keys
	delay   time.Duration // at first, so that other processes can go first
	began   decide.Instant

	damaged atomic.Pointer[error] // why one of the keys cannot be acquired, for the caller
	granted Holding               // once the task is done; or
	err     error                 // why not
}

// newAnyWaiter returns a task that joins the local queues of all keys.
func (c *Client) newAnyWaiter(ctx context.Context, wants []*Want) *anyWaiter {
	w := &anyWaiter{c: c, task: newTask(ctx), began: c.Now(), turns: make(chan turn, len(wants))}
	for _, want := range wants {
		of := w.waiter(c, want, w.began)
		of.place = c.newPlace(ctx, want, w.turns)
		w.waiters = append(w.waiters, of)
	}
	return w
}

// newOneWaiter returns a task for one key, whose caller has the turn of its local queue.
func (c *Client) newOneWaiter(ctx context.Context, want *Want, delay time.Duration, began decide.Instant) *anyWaiter {
	t := newTask(ctx)
	of := t.waiter(c, want, began)
	of.ready = true
	w := t.only(of, began)
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
			w.c.Local.Join(of.place)
		}
	}
	of, h, err := w.acquire()
	givenUp := w.finish()
	if err != nil {
		w.err = err
		w.leaveOthers(nil)
		return
	}
	w.c.Local.Granted(of.want.Key, h)
	if !givenUp {
		w.leaveOthers(of)
		w.granted = h
		return
	}
	given := make(chan struct{})
	w.c.Detach(func() { // at once, whatever there is to undo for other keys
		defer close(given)
		h.GiveBack()
	})
	w.leaveOthers(of)
	<-given
}

// leaveOthers gives up every key but the one that was granted, nil for none.
func (w *anyWaiter) leaveOthers(granted *waiter) {
	for _, of := range w.waiters {
		if of.place == nil {
			continue
		}
		if given, had := w.c.Local.Leave(of.place); had { // either for this key or for another
			w.c.Local.Pass(given.Of.Key, nil)
		}
	}
	var undone sync.WaitGroup
	for _, of := range w.waiters {
		if of == granted {
			of.leaveTried()
		} else {
			of.leave(&undone)
		}
	}
	if w.waiters[0].want.Manual { // see cleanUp; otherwise nobody waits, and no goroutine is needed
		done := make(chan struct{})
		w.c.Detach(func() {
			undone.Wait()
			close(done)
		})
		w.c.AwaitGrace(done)
	}
}

// acquire asks for the keys until one is granted, none can be, or nobody waits.
func (w *anyWaiter) acquire() (*waiter, Holding, error) {
	for {
		of, err := w.await()
		if err != nil {
			return nil, nil, err
		}
		h, err := of.take()
		if h != nil {
			return of, h, nil
		}
		if err := w.failed(of, granting, err); err != nil {
			return nil, nil, err
		}
	}
}

// await waits until one of the keys may be asked for, and returns the first. It is the
// one place that waits for a record to change. An error ends the waiting.
func (w *anyWaiter) await() (*waiter, error) {
	for w.ctx.Err() == nil {
		u := w.c.Chance() // one for all: the least of many pauses would be too short
		w.takeTurns()
		of, p, err := w.first(u)
		switch {
		case w.ctx.Err() != nil:
			return nil, w.ctx.Err() // nobody reads it
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
	return nil, w.ctx.Err() // nobody reads it
}

// pause is the next step while no key may be requested.
type pause struct {
	wait time.Duration
	look bool // after it, read all records
}

// first returns the first key that may be asked for now; nil if there is none.
func (w *anyWaiter) first(u float64) (*waiter, pause, error) {
	p := pause{wait: math.MaxInt64}
	var anyLook, repeated bool
	ready := w.candidates()
	w.chooseQueues(ready)
	for _, of := range ready {
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
		if wait < p.wait {
			p, repeated = pause{wait, move == decide.Look}, of.failing != nothing
		}
	}
	// A request that is repeated may take long again: look at the other keys before.
	p.look = p.look || repeated && anyLook
	return nil, p, nil
}

// chooseQueues chooses the queues that the call joins next: the shortest, once the
// records of all keys are known. While nobody knows whether a key was granted it joins none.
func (w *anyWaiter) chooseQueues(ready []*waiter) {
	if len(w.waiters) == 1 {
		return
	}
	left := decide.Queues(durations.Less(w.c.Now().Mono, w.began.Mono))
	var apart []*waiter
	for _, of := range w.waiters {
		of.record.holdsBack = true
	}
	for _, of := range ready {
		switch {
		case of.record.stands():
			left--
		case !of.view.Known, of.unclear:
			return
		case of.seen != nil:
			apart = append(apart, of)
		}
	}
	slices.SortStableFunc(apart, func(a, b *waiter) int { return cmp.Compare(len(a.seen.Waiters), len(b.seen.Waiters)) })
	for _, of := range apart[:min(max(left, 0), len(apart))] {
		of.record.holdsBack = false
	}
}

// isLate reports whether a call with NoWait has waited long enough for answers.
func (w *anyWaiter) isLate() bool {
	return w.waiters[0].want.NoWait && w.task.isLate(w.began, w.c.Now())
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

// failed notes the failure of a request for a key, or its success if err is nil. A returned
// error ends the wait.
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
	if !of.missing {
		w.damaged.Store(&err)
		w.c.Listener.Report(w.ctx, core.Event{Kind: core.WaitError, Key: of.want.Key, Err: err})
	}
	w.c.Local.Pass(of.want.Key, nil)
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

// withDamaged adds to why, the cause that ended a wait, the reason why another key cannot be
// acquired.
func (w *anyWaiter) withDamaged(why error) error {
	if bad := w.damaged.Load(); bad != nil {
		return errors.Join(why, *bad)
	}
	return why
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
			of.ready, of.from = true, durations.Sum(w.c.Now().Mono, given.Delay)
		}
	}
}

// pause waits until a turn has come, but no longer than d. It reports whether it is
// time to look.
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
	keys := make([]protocol.Key, len(ready))
	for i, of := range ready {
		keys[i] = of.want.Key
	}
	items, requests, err := w.c.Requests.ReadAll(w.ctx, keys)
	w.requests += requests
	f := attempts.FailureOf(err)
	for _, of := range ready {
		if f != nil {
			err = of.repeat(looking, f)
		} else {
			err = w.failed(of, looking, of.shown(items[of.want.Key]))
		}
		if err != nil {
			return err
		}
	}
	if f != nil && f.Cause == decide.Busy { // once, for all of them
		w.c.Listener.Report(w.ctx, core.Event{Kind: core.Throttled, Key: keys[0], Requests: requests, Err: f.Err})
	}
	return nil
}

// notAcquired is the error of a call with NoWait once it has had its answer, or waited
// long enough for one: of the first key that is held, or for which DynamoDB has not
// answered. Nil: it goes on.
func (w *anyWaiter) notAcquired() error {
	late := w.isLate()
	goesOn := func(of *waiter) bool { return of.willRepeat() || of.isWatched() }
	if !w.waiters[0].want.NoWait || !late && slices.ContainsFunc(w.waiters, goesOn) {
		return nil
	}
	unanswered := w.waiters[0]
	for _, of := range w.waiters {
		switch {
		case of.dropped != nil:
			continue
		case late && of.failing != nothing:
			return of.timeoutError(w.began)
		case of.seen != nil:
			return w.c.Errors.Held(of.want.Key, *of.seen, w.withDamaged(nil))
		case of.place != nil && (!of.ready || !late): // it is the turn of another goroutine or another process
			holder := w.c.Local.Holder(of.want.Key)
			if holder == nil {
				holder = &protocol.Record{Key: of.want.Key, Owner: w.c.Owner}
			}
			return w.c.Errors.Held(of.want.Key, *holder, w.withDamaged(nil))
		}
		unanswered = of // free when last seen, but not granted since
	}
	return unanswered.timeoutError(w.began)
}

// waitsFor returns the first key that is known to be held, here or in another process,
// and its holder. If no key is, it returns the first key and nil.
func (w *anyWaiter) waitsFor() (*waiter, *protocol.Record) {
	for _, of := range w.waiters {
		if r := of.holder.Load(); r != nil {
			return of, r
		}
		if r := w.c.Local.LastHolder(of.want.Key); r != nil {
			return of, r
		}
	}
	return w.waiters[0], nil
}
