package acquire

import (
	"slices"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
)

// all acquires the keys of a call of All, one after the other, in sorted order. Every call uses
// this order, so calls never wait for each other in a circle.
func (w *call) all() {
	err := w.acquireAll()
	if w.finish() || err != nil {
		w.err = err
		w.c.keeper.GiveBack(w.takeHeld())
		for _, of := range w.parts {
			of.leave()
		}
		w.undone.Wait()
		return
	}
	for i, of := range w.parts {
		of.leaveTried()
		w.c.Local.Granted(of.want.Key, w.held[i])
	}
}

// acquireAll acquires keys until the call holds all of them, a wait fails, or the caller has
// stopped waiting. If the call loses a key meanwhile, acquireAll releases all keys of the call and
// begins again.
func (w *call) acquireAll() error {
	// Only this goroutine changes held. It contains the same holdings as w.held, which the caller's
	// goroutine empties if the caller stops waiting.
	var held []Holding
	for len(held) < len(w.parts) {
		left := w.parts[len(held):]
		h, err := w.acquireNext(left)
		if err != nil {
			return err
		}
		held = append(held, h)
		w.mu.Lock()
		w.held = append(w.held, h)
		w.mu.Unlock()
		r := h.Record()
		// Report the new grant to the local queue of the key. Calls with NoWait in that queue then
		// return ErrHeld at once, instead of waiting behind this call.
		w.c.Local.ReportHolder(left[0].want.Key, &r)
		if slices.ContainsFunc(held, func(h Holding) bool { return h.Lease().Ended() != nil }) {
			w.c.keeper.GiveBack(w.takeHeld())
			for i := range held {
				next := w.parts[i].startOver()
				w.mu.Lock()
				w.parts[i] = next // w.waiters is a part of w.parts
				w.mu.Unlock()
			}
			held = nil
		}
	}
	for i, of := range w.parts {
		if of.want.Manual {
			held[i].Lease().ByHand()
		}
	}
	return nil
}

// acquireNext acquires the key of left[0], the first key that the call does not hold yet. It sends a
// grant without a read, unless readAhead has read the record. With NoWait, that reading must be
// recent. If this grant does not acquire the key, acquireNext calls readAhead before it waits.
func (w *call) acquireNext(left []*waiter) (Holding, error) {
	of := left[0]
	w.mu.Lock()
	w.waiters = left[:1]
	w.mu.Unlock()
	if !of.ready {
		began := w.began
		began.Mono = max(began.Mono, w.watched)
		given, err := w.c.awaitTurn(w.ctx, of.want, began)
		if err != nil {
			return nil, err
		}
		of.begin(given)
	}
	if w.ctx.Err() != nil {
		return nil, w.ctx.Err() // the caller has stopped waiting
	}
	if err := of.recall(); err != nil {
		return nil, err
	}
	if !of.view.Known || of.want.NoWait && durations.Less(w.c.Now().Mono, of.view.Looked) > decide.Lately {
		h, err := of.take()
		if h != nil {
			return h, nil
		}
		if err := of.failed(granting, err); err != nil {
			return nil, err
		}
	}
	if err := w.readAhead(left); err != nil {
		return nil, err
	}
	_, h, err := w.acquire()
	return h, err
}

// readAhead reads the records of the keys in left and the rows of their holders' sessions, unless an
// earlier readAhead of the call has succeeded. So the call observes all holders at the same time.
// With NoWait, it returns ErrHeld at once if any holder is live. Without readAhead, the call could
// first observe, for a whole lease, another holder that appears dead.
func (w *call) readAhead(left []*waiter) error {
	if w.read {
		return nil
	}
	items, _, err := w.readAll(left)
	if err != nil {
		return left[0].failed(looking, err)
	}
	w.read = true
	for _, of := range left {
		if err := of.shown(items[of.want.Key]); err != nil {
			return err
		}
		if err := of.failed(refreshing, of.lookAtSession()); err != nil {
			return err
		}
		switch {
		case !of.want.NoWait:
			continue
		case of.failing == refreshing && w.isLate():
			return of.timeoutError() // each of the other keys could take as long
		}
		// The holder does not count as live if the call may take the key over now. For example, the
		// record may show an abandoned attempt of this client.
		move, pause := of.move(0)
		if ready := move != decide.Look && pause == 0; !ready && !of.willRepeat() && !of.isWatched() {
			return w.c.Errors.Held(of.want.Key, *of.seen, nil)
		}
	}
	return nil
}

// takeHeld returns the holdings of the call and removes them from w.held. The caller of takeHeld
// must release their keys.
func (w *call) takeHeld() []Holding {
	w.mu.Lock()
	defer w.mu.Unlock()
	held := w.held
	w.held = nil
	return held
}
