package seek

import (
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// An allWaiter takes the turns of all its local lines at once. While it waits it
// has only the turn of the key it waits for: goroutines of its client may acquire
// the others, and so may other processes.

// takeTurns takes the turns that are missing. False: another goroutine had one of
// them. Then takeTurns waited in that line, and has that turn alone.
func (w *allWaiter) takeTurns() (bool, error) {
	var missing []protocol.Key
	for _, part := range w.parts {
		if !part.ready {
			missing = append(missing, part.want.Key)
		}
	}
	busy, all := w.c.Lines.TakeAll(missing...)
	for _, part := range w.parts {
		if all {
			part.ready = true
		} else if busy == part.want.Key {
			return false, w.waitFor(part)
		}
	}
	return true, nil
}

// waitFor waits for the turn of part, and passes on all the others first.
func (w *allWaiter) waitFor(part *waiter) error {
	for _, other := range w.parts {
		if other != part {
			w.passTurn(other)
		}
	}
	return w.takeTurn(part)
}

// takeTurn waits for the turn of part, and then as long as other processes go first.
func (w *allWaiter) takeTurn(part *waiter) error {
	w.at.Store(part)
	if part.ready {
		return nil
	}
	began := w.began
	began.Mono = max(began.Mono, w.watched)
	given, err := w.c.awaitTurn(w.ctx, part.want, began)
	if err != nil {
		return err
	}
	part.ready = true
	attempts.Wait(w.ctx, given.Delay)
	return w.ctx.Err() // nobody reads it
}

func (w *allWaiter) passTurns() {
	for _, part := range w.parts {
		w.passTurn(part)
	}
}

func (w *allWaiter) passTurn(part *waiter) {
	if part.ready {
		part.ready = false
		w.c.Lines.Pass(part.want.Key, nil)
	}
}

// waitsFor returns the part that is waited for and who holds its key, here or in
// another process; nil if that is not known.
func (w *allWaiter) waitsFor() (*waiter, *protocol.Record) {
	at := w.at.Load()
	if r := w.c.Lines.LastHolder(at.want.Key); r != nil {
		return at, r
	}
	return at, at.holder.Load()
}
