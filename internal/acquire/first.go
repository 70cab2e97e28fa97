package acquire

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// otherKeysEvery is the least time between two reads of a key whose queue the call has not joined.
// It applies only after the call has joined another queue. There may be many such keys, and each
// read costs a read unit per key.
const otherKeysEvery = 250 * time.Millisecond

// first acquires the first key of the call that becomes free, and stops waiting for the
// other keys.
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
	// The caller has stopped waiting, so release the key. Start the release before the call of
	// leaveOthers, which may wait until the call has left the queues of the other keys.
	given := w.c.detached(func() { w.c.keeper.GiveBack([]Holding{h}) })
	w.leaveOthers(of)
	<-given
}

// leaveOthers stops waiting for every key except the granted key, or for all keys if granted is
// nil. If an unanswered attempt of the call has acquired one of these keys, leaveOthers releases
// the key.
func (w *call) leaveOthers(granted *waiter) {
	for _, of := range w.parts {
		if of.local == nil {
			continue
		}
		// By now it may be the call's turn in the local queue of this key. The call no longer needs
		// this turn, so PassAfter gives it to the next call in that queue.
		if given, had := w.c.Local.leave(of.local); had {
			w.c.Local.PassAfter(given.of.Want.Key, nil, given.delay)
		}
	}
	for _, of := range w.parts {
		switch {
		case of == granted:
			of.leaveTried()
		case of.dropped == nil: // otherwise the method drop has called leave
			of.leave()
		}
	}
	// A process that wants a lock without renewal may be frozen once the call returns (see
	// cleanUp). So first wait until the writes to the other keys are undone.
	if w.parts[0].want.Manual {
		w.c.AwaitGrace(w.c.detached(w.undone.Wait))
	}
}

// acquire sends reads and grants until a key is granted, the wait fails, or the caller has stopped
// waiting.
func (w *call) acquire() (*waiter, Holding, error) {
	for w.ctx.Err() == nil {
		// Use one random number for the pauses of all keys. The call waits for the shortest pause.
		// With a random number for each key, this pause would on average be too short.
		u := w.c.Chance()
		for len(w.turns) > 0 {
			w.takeTurn(<-w.turns)
		}
		next, wait, look, err := w.next(u)
		switch {
		case w.ctx.Err() != nil: // the caller has stopped waiting
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
	return nil, nil, w.ctx.Err() // the caller has stopped waiting
}

// next returns the first key for which a grant may be sent now. If there is none, it returns nil,
// the pause before the next step, and whether that step is a read. The parameter u is a random
// number, uniform in [0,1).
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
		if of.failing == refreshing && w.isLate() {
			break // each of the other keys could take as long
		}
		if of.dropped != nil {
			continue
		}
		move, pause := decide.Take, of.pausing()
		// While the holder's session cannot be read, the record can: it may show that the key is free.
		if step, after := of.move(u); pause <= 0 || of.failing == refreshing && (step != decide.TakeOver || of.view.Ours) {
			move, pause = step, after
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
	// If the next step repeats a failed request, which may again take a long time, read the other
	// keys first.
	return nil, wait, look || repeated && anyLook, nil
}

// mustReadAll reports whether to read all keys next. It returns true if at least two keys, but not
// all, await their first request: one read costs less than several rejected grants. With NoWait,
// the call instead sends grants, because a key may be free.
func (w *call) mustReadAll(ready []*waiter) bool {
	unread := 0
	for _, of := range ready {
		if !of.view.Known && of.failing == nothing && of.pausing() <= 0 {
			unread++
		}
	}
	return !w.waiters[0].want.NoWait && 1 < unread && unread < len(ready)
}

// chooseQueues chooses the records whose queues a call of First joins next: those with the shortest
// queues. It chooses none until all records are read, while a key is free, or while the outcome of
// a grant is unknown.
func (w *call) chooseQueues(ready []*waiter) {
	if len(w.waiters) == 1 {
		return
	}
	left := decide.Queues(durations.Less(w.c.Now().Mono, w.began.Mono))
	var apart []*waiter
	for _, of := range ready {
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

// candidates returns the keys for which the call may send requests. While the outcome of a grant is
// unknown, it returns only that grant's key: otherwise the call could acquire two keys. Once isLate
// returns true, keys whose last request failed are left out.
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

// takeTurn records that the call is now first in a local queue, and may send requests for the
// key of that queue.
func (w *call) takeTurn(given turn) {
	for _, of := range w.waiters {
		if of.local == given.of {
			of.ready, of.from = true, durations.Sum(w.c.Now().Mono, given.delay)
		}
	}
}

// pause waits for d, and then returns true: it is time for the next step. It returns false earlier
// if the call becomes the first in a local queue, or if its caller stops waiting.
func (w *call) pause(d time.Duration) bool {
	if len(w.turns) > 0 { // came during a long request; goes first even if d is zero
		w.takeTurn(<-w.turns)
		return false
	}
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

// due returns the keys whose records are to be read now. As a rule, these are the few keys whose
// queues the call has joined. If it is also time to read another key, due returns all keys, because
// one request can read them together. It never returns a key for which backsOff returns true.
func (w *call) due() []*waiter {
	ready, now := slices.DeleteFunc(w.candidates(), (*waiter).backsOff), w.c.Now().Mono
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

// backsOff reports whether the record is not to be read now, because the last read has failed: it
// is too early to repeat that read, or the waiter can send a grant without a read.
func (w *waiter) backsOff() bool {
	if w.failing != looking {
		return false
	}
	move, _ := w.move(0)
	return w.willRepeat() || move != decide.Look
}

// look reads the records of the keys that due returns.
func (w *call) look() error {
	ready := w.due()
	if len(ready) == 1 {
		of := ready[0]
		w.requests.Add(1)
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
	var unread *waiter // first of the keys that f is about; nil if f is nil
	for _, of := range ready {
		if item, read := items[of.want.Key]; read {
			err = of.failed(looking, of.shown(item))
		} else {
			unread, err = cmp.Or(unread, of), of.repeat(looking, f)
		}
		if err != nil {
			return err
		}
	}
	// Report the throttled batch read once, and not once for each key.
	if unread != nil && f.Cause == decide.Busy {
		w.c.Report(w.ctx, core.Event{Kind: core.Throttled, Key: unread.want.Key, Requests: requests, Err: f.Err})
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
	w.requests.Add(int64(requests))
	return items, requests, err
}

// notAcquired returns nil if the call continues to wait. Without NoWait, it always does. Otherwise
// notAcquired returns the error of the call. The error names the first key that is held, or for
// which DynamoDB has not answered in time.
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
		case of.local != nil && (!of.ready || !late): // another goroutine of this client, or another process, goes first
			holder := cmp.Or(w.c.Local.Holder(of.want.Key), &protocol.Record{Key: of.want.Key, Owner: w.c.Owner})
			return w.c.Errors.Held(of.want.Key, *holder, w.withDamaged(nil))
		}
		unanswered = of // the key was free when it was last read, and no grant has had an answer since then
	}
	return unanswered.timeoutError()
}
