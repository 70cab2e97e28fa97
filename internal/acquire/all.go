package acquire

import (
	"slices"
	"sync"

	"github.com/leasehold-go/leasehold/internal/attempts"
)

// all acquires the keys one after the other, in sorted order. All callers use that order,
// so that no two wait for each other. all renews the keys that it already holds.
func (w *call) all() {
	err := w.acquireAll()
	if w.finish() || err != nil {
		w.err = err
		w.c.keeper.GiveBack(w.takeHeld())
		var undone sync.WaitGroup
		for _, of := range w.parts {
			of.leave(&undone)
		}
		undone.Wait()
		return
	}
	for i, of := range w.parts {
		of.leaveTried()
		w.c.Local.Granted(of.want.Key, w.held[i])
	}
}

// acquireAll acquires the keys until all are held, one is refused, or the caller has left.
// If it loses a key while it waits for others, it releases all keys and begins again.
func (w *call) acquireAll() error {
	var held []Holding // the same as w.held, which is empty once the caller has left
	for len(held) < len(w.parts) {
		left := w.parts[len(held):]
		h, err := w.acquireNext(left)
		if err != nil {
			return err
		}
		held = append(held, h)
		w.keep(h)
		r := h.Lease().Record()
		w.c.Local.ReportHolder(left[0].want.Key, &r) // reports the holder to local callers with NoWait, so that they need not wait for this call
		if slices.ContainsFunc(held, func(h Holding) bool { return h.Lease().Ended() != nil }) {
			w.c.keeper.GiveBack(w.takeHeld())
			held = nil
		}
	}
	for i, of := range w.parts {
		if of.manual {
			held[i].Lease().ByHand()
		}
	}
	return nil
}

// acquireNext acquires the first of the keys that are left. It waits in the local queue of
// that key until the turn of this call comes, and then pauses if other processes are to go
// first. It sends the first grant without a read. If that grant is rejected, it reads the
// records of all keys that are left before it waits for this one.
func (w *call) acquireNext(left []*waiter) (Holding, error) {
	of := left[0]
	w.at.Store(of)
	w.waiters = left[:1]
	if !of.ready {
		began := w.began
		began.Mono = max(began.Mono, w.watched)
		given, err := w.c.awaitTurn(w.ctx, of.want, began)
		if err != nil {
			return nil, err
		}
		of.ready = true
		attempts.Wait(w.ctx, given.Delay)
	}
	if w.ctx.Err() != nil {
		return nil, w.ctx.Err() // the caller has left
	}
	of.want.Manual = false // renews the key while the call waits for other keys, even if the caller wants no renewal, as that wait may be long
	defer func() { of.want.Manual = of.manual }()
	if err := of.recall(); err != nil {
		return nil, err
	}
	if !of.view.Known {
		h, err := of.take()
		if h != nil {
			return h, nil
		}
		if err := of.failed(granting, err); err != nil {
			return nil, err
		}
		if of.seen != nil {
			if err := w.readAhead(left); err != nil {
				return nil, err
			}
		}
	}
	_, h, err := w.acquire()
	return h, err
}

// readAhead reads the records of the remaining keys, once. From then on, all dead holders
// are observed at the same time. So the call waits one lease for all of them together, and
// not one lease for each. A call with NoWait learns of a live holder before it waits for a
// holder that appears dead.
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
		if !of.want.NoWait || of.seen == nil {
			continue
		}
		if err := of.failed(refreshing, of.refresh()); err != nil {
			return err
		}
		if !of.willRepeat() && !of.isWatched() {
			return w.c.Errors.Held(of.want.Key, *of.seen, nil)
		}
	}
	return nil
}

// keep adds a holding to the holdings of a call that is still acquiring more keys.
func (w *call) keep(h Holding) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = append(w.held, h)
}

// takeHeld returns the holdings and removes them from the call. The function that calls
// takeHeld must release them.
func (w *call) takeHeld() []Holding {
	w.mu.Lock()
	defer w.mu.Unlock()
	held := w.held
	w.held = nil
	return held
}
