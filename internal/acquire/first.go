package acquire

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// otherKeysEvery is how often a call for one of several keys reads the keys whose queues it
// has not joined. Each such read costs as many units as there are keys, so it is rarer than
// a read of the keys whose queues the call has joined.
const otherKeysEvery = 250 * time.Millisecond

// first acquires the first of the keys that is free, and gives up the others.
func (w *call) first() {
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
		w.held = []Holding{h}
		return
	}
	given := w.c.detached(h.GiveBack) // releases the key at once, without waiting until the other keys have been given up
	w.leaveOthers(of)
	<-given
}

// leaveOthers gives up every key except the granted one, or all keys if granted is nil.
func (w *call) leaveOthers(granted *waiter) {
	for _, of := range w.parts {
		if of.local == nil {
			continue
		}
		if given, had := w.c.Local.Leave(of.local); had { // a turn may have come meanwhile, for this key or for another key of the call
			w.c.Local.Pass(given.Of.Key, nil)
		}
	}
	var undone sync.WaitGroup
	for _, of := range w.parts {
		if of == granted {
			of.leaveTried()
		} else {
			of.leave(&undone)
		}
	}
	if w.parts[0].manual { // if the lock is renewed, the caller need not wait; see cleanUp
		w.c.AwaitGrace(w.c.detached(undone.Wait))
	}
}

// acquire requests the keys until one is granted, no key can be granted, or the caller has
// left. It is the only loop that waits for records to change. An error ends the wait.
func (w *call) acquire() (*waiter, Holding, error) {
	for w.ctx.Err() == nil {
		u := w.c.Chance() // the same random number for all keys, as the shortest of several random pauses would be too short
		for len(w.turns) > 0 {
			w.takeTurn(<-w.turns)
		}
		next, wait, look, err := w.next(u)
		switch {
		case w.ctx.Err() != nil: // the caller has left
		case err != nil:
			return nil, nil, err
		case next != nil:
			h, err := next.take()
			if h != nil {
				return next, h, nil
			}
			if err := next.failed(granting, err); err != nil {
				return nil, nil, err
			}
		default:
			if err := w.notAcquired(); err != nil {
				return nil, nil, err
			}
			if w.pause(wait) && look {
				if err := w.look(); err != nil {
					return nil, nil, err
				}
			}
		}
	}
	return nil, nil, w.ctx.Err() // the caller has left
}

// next returns the first key that may be requested now. If there is none, it returns the
// pause before the next step, and whether that step is to read all records. u is uniform in
// [0, 1).
func (w *call) next(u float64) (_ *waiter, wait time.Duration, look bool, _ error) {
	wait = math.MaxInt64
	var anyLook, repeated bool
	ready := w.candidates()
	if w.mustReadAll(ready) {
		return nil, 0, true, nil
	}
	w.chooseQueues(ready)
	queued := slices.ContainsFunc(ready, (*waiter).isQueued)
	for _, of := range ready {
		if err := of.failed(refreshing, of.refresh()); err != nil {
			return nil, 0, false, err
		}
		if of.dropped != nil {
			continue
		}
		move, pause := decide.Take, of.pausing()
		if pause <= 0 {
			move, pause = of.move(u)
		}
		if move != decide.Look && pause == 0 {
			return of, 0, false, nil
		}
		if move == decide.Look && len(w.waiters) > 1 {
			if queued && !of.isQueued() {
				pause = max(pause, otherKeysEvery)
			}
			of.lookAt = durations.Sum(of.view.Looked, pause)
			pause = max(durations.Less(of.lookAt, w.c.Now().Mono), 0)
		}
		anyLook = anyLook || move == decide.Look
		if pause < wait {
			wait, look, repeated = pause, move == decide.Look, of.failing != nothing
		}
	}
	// A repeated request may again take a long time, so read the other keys first.
	return nil, wait, look || repeated && anyLook, nil
}

// mustReadAll reports whether the next step is to read all keys. It returns true once a
// reply has shown one of the keys, and several others are unknown: one read costs less than
// a rejected grant for each of them. A call with NoWait sends the grants instead, as one of
// them may succeed.
func (w *call) mustReadAll(ready []*waiter) bool {
	unread := 0
	for _, of := range ready {
		if !of.view.Known && of.failing == nothing && of.pausing() <= 0 {
			unread++
		}
	}
	return !w.waiters[0].want.NoWait && 1 < unread && unread < len(ready)
}

// chooseQueues chooses the record queues that the call joins next. It chooses the shortest
// queues, once the records of all keys have been read. It chooses no queue while a key is
// free, or while the outcome of a grant is unknown.
func (w *call) chooseQueues(ready []*waiter) {
	if len(w.waiters) == 1 {
		return
	}
	left := decide.Queues(durations.Less(w.c.Now().Mono, w.began.Mono))
	var apart []*waiter
	for _, of := range w.waiters {
		of.queue.holdsBack = true
	}
	for _, of := range ready {
		switch {
		case of.isQueued():
			left--
		case !of.view.Known, of.view.Free, of.unclear:
			return
		case of.seen != nil:
			apart = append(apart, of)
		}
	}
	slices.SortStableFunc(apart, func(a, b *waiter) int { return cmp.Compare(len(a.seen.Waiters), len(b.seen.Waiters)) })
	for _, of := range apart[:min(max(left, 0), len(apart))] {
		of.queue.holdsBack = false
	}
}

// candidates returns the keys that may be requested: the keys for which the call has the
// turn, and the keys that need no turn. While the outcome of a grant is unknown, it returns
// only the key of that grant, as otherwise two keys could be granted. If a call with NoWait
// is late, candidates leaves out the keys whose last request failed.
func (w *call) candidates() []*waiter {
	late := w.isLate()
	var ready []*waiter
	for _, of := range w.waiters {
		switch {
		case of.dropped != nil, of.local != nil && !of.ready, late && of.failing != nothing:
		case of.unclear:
			return []*waiter{of}
		default:
			ready = append(ready, of)
		}
	}
	return ready
}

// takeTurn marks the key of a turn as ready to be requested.
func (w *call) takeTurn(given turn) {
	for _, of := range w.waiters {
		if of.local == given.Of {
			of.ready, of.from = true, durations.Sum(w.c.Now().Mono, given.Delay)
		}
	}
}

// pause waits until a turn comes, for at most d. It reports whether it is time to read the
// records.
func (w *call) pause(d time.Duration) bool {
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

// due returns the keys whose records are to be read now. These are the few keys whose
// queues the call has joined. Once another key is due, they are all keys, as one request
// can read them together.
func (w *call) due() []*waiter {
	ready, now := w.candidates(), w.c.Now().Mono
	var queued []*waiter
	for _, of := range ready {
		if of.isQueued() {
			queued = append(queued, of)
		} else if of.lookAt <= now {
			return ready
		}
	}
	if len(queued) == 0 {
		return ready
	}
	return queued
}

// look reads the records that are due.
func (w *call) look() error {
	ready := w.due()
	if len(ready) == 1 {
		of := ready[0]
		w.requests++
		of.asked = w.c.Now()
		item, err := w.c.Requests.Read(w.ctx, of.want.Key)
		if err == nil {
			w.c.noteRoundTrip(of.asked)
			err = of.shown(item)
		}
		return of.failed(looking, err)
	}
	items, requests, err := w.readAll(ready)
	f := attempts.FailureOf(err)
	for _, of := range ready {
		if f != nil {
			err = of.repeat(looking, f)
		} else {
			err = of.failed(looking, of.shown(items[of.want.Key]))
		}
		if err != nil {
			return err
		}
	}
	if f != nil && f.Cause == decide.Busy { // throttling is reported once for the batch, not once for each key
		w.c.Listener.Report(w.ctx, core.Event{Kind: core.Throttled, Key: ready[0].want.Key, Requests: requests, Err: f.Err})
	}
	return nil
}

// readAll reads the records of several keys. It returns the records that exist, and the
// number of requests.
func (w *call) readAll(of []*waiter) (map[protocol.Key]protocol.Item, int, error) {
	sent := w.c.Now()
	keys := make([]protocol.Key, len(of))
	for i, each := range of {
		keys[i], each.asked = each.want.Key, sent
	}
	items, requests, err := w.c.Requests.ReadAll(w.ctx, keys)
	w.requests += requests
	return items, requests, err
}

// notAcquired returns the error that ends a call with NoWait. The error names the first key
// that is held, or for which DynamoDB has not answered in time. notAcquired returns nil if
// the call is to continue.
func (w *call) notAcquired() error {
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
			return of.timeoutError()
		case of.seen != nil:
			return w.c.Errors.Held(of.want.Key, *of.seen, w.withDamaged(nil))
		case of.local != nil && (!of.ready || !late): // another goroutine or another process goes first
			holder := cmp.Or(w.c.Local.Holder(of.want.Key), &protocol.Record{Key: of.want.Key, Owner: w.c.Owner})
			return w.c.Errors.Held(of.want.Key, *holder, w.withDamaged(nil))
		}
		unanswered = of // the key was free when last seen, but no grant has been answered since
	}
	return unanswered.timeoutError()
}
