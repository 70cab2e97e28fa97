package seek

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// allWaiter acquires several keys for one AcquireAll call: two at least. It takes them one
// after the other in the order of their keys, which all callers have in common, so that no
// two wait for each other. Keys that it holds meanwhile are renewed. Like a waiter it runs on a
// goroutine of its own.
type allWaiter struct {
	c     *Client
	parts []*waiter              // in order of their keys
	at    atomic.Pointer[waiter] // the part that is waited for, for the caller
	began decide.Instant
	read  bool // the records of all parts have been read

	*task
	held []Holding // so far, in order of parts, to be given back with err; task.mu guards it until the task is done
	err  error     // set once the task is done; nil if all are held
}

func newAllWaiter(ctx context.Context, c *Client, wants []*Want) *allWaiter {
	w := &allWaiter{c: c, task: newTask(ctx), began: c.Now()}
	for _, want := range wants {
		w.parts = append(w.parts, w.waiter(c, want, w.began))
	}
	w.at.Store(w.parts[0])
	return w
}

func (w *allWaiter) run() {
	defer w.cancel()
	defer close(w.done)
	for _, part := range w.parts {
		part.record.watch()
		defer part.record.unwatch()
	}
	held, err := w.acquire()
	if w.finish() || err != nil {
		w.err = err
		w.c.keeper.GiveBack(w.takeHeld())
		w.giveUpUnanswered()
		for _, part := range w.parts {
			w.passTurn(part)
		}
		return
	}
	for i, part := range w.parts {
		part.leaveTried()
		w.c.Local.Granted(part.want.Key, held[i])
	}
}

// acquire takes the keys until all are held, one is refused, or nobody waits. If a key is
// lost while others are waited for, it gives all back and begins again.
func (w *allWaiter) acquire() ([]Holding, error) {
	for {
		held, err := w.takeInOrder()
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(held, isLost) {
			for i, part := range w.parts {
				if part.manual {
					held[i].Lease().ByHand()
				}
			}
			return held, nil
		}
		w.c.keeper.GiveBack(w.takeHeld())
	}
}

func isLost(h Holding) bool { return h.Lease().Ended() != nil }

// takeInOrder takes one key after the other, until one is refused or lost.
func (w *allWaiter) takeInOrder() ([]Holding, error) {
	var held []Holding
	for i, part := range w.parts {
		if err := w.takeTurn(part); err != nil {
			return nil, err
		}
		part.want.Manual = false
		h, err := w.take(part, w.parts[i:])
		part.want.Manual = part.manual
		if err != nil {
			return nil, err
		}
		held = append(held, h)
		w.keep(h)
		r := h.Lease().Record()
		w.c.Local.ReportHolder(part.want.Key, &r) // callers with NoWait need not wait for this call
		if slices.ContainsFunc(held, isLost) {
			break
		}
	}
	return held, nil
}

// take takes the key of one part. The first grant is sent without a read; if it is rejected,
// the records of all parts that are left are read before the key is waited for.
func (w *allWaiter) take(part *waiter, left []*waiter) (Holding, error) {
	if w.ctx.Err() != nil {
		return nil, w.ctx.Err() // nobody reads it
	}
	one := w.only(part, w.began)
	if err := part.record.recall(); err != nil {
		return nil, err
	}
	if !part.view.Known {
		h, err := part.take()
		if h != nil {
			return h, nil
		}
		if err := one.failed(part, granting, err); err != nil {
			return nil, err
		}
		if part.seen != nil {
			if err := w.readAhead(left); err != nil {
				return nil, err
			}
		}
	}
	_, h, err := one.acquire()
	return h, err
}

// readAhead reads the records of the parts that are left, once. From then on each dead holder
// is observed, so that all of them together take one lease, and not one each; and a call with
// NoWait that would watch a holder that appears dead learns of a live one first.
func (w *allWaiter) readAhead(left []*waiter) error {
	if w.read {
		return nil
	}
	keys := make([]protocol.Key, len(left))
	for i, part := range left {
		keys[i] = part.want.Key
	}
	items, requests, err := w.c.Requests.ReadAll(w.ctx, keys)
	w.requests += requests
	if err != nil {
		return left[0].failed(looking, err)
	}
	w.read = true
	for _, part := range left {
		if err := part.shown(items[part.want.Key]); err != nil {
			return err
		}
		if !part.want.NoWait || part.seen == nil {
			continue
		}
		if err := part.failed(refreshing, part.refresh()); err != nil {
			return err
		}
		if !part.willRepeat() && !part.isWatched() {
			return w.c.Errors.Held(part.want.Key, *part.seen, nil)
		}
	}
	return nil
}

// takeTurn waits for the turn of part in its local queue, and then as long as other
// processes go first.
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

func (w *allWaiter) passTurn(part *waiter) {
	if part.ready {
		part.ready = false
		w.c.Local.Pass(part.want.Key, nil)
	}
}

// giveUpUnanswered frees what attempts without an answer may have taken, and leaves the
// queue. From here on they are unsettled. If one of them turns out to hold the key, it is taken over
// and never used: its release may still be on its way.
func (w *allWaiter) giveUpUnanswered() {
	var wg sync.WaitGroup
	for _, part := range w.parts {
		tried := part.leaveTried()
		wg.Go(func() {
			w.c.freeUnsettled(w.values, part.want, tried)
			part.record.giveUp()
		})
	}
	wg.Wait()
}

// waitsFor returns the part that is waited for and the holder of its key, here or in
// another process; nil if the holder is unknown.
func (w *allWaiter) waitsFor() (*waiter, *protocol.Record) {
	at := w.at.Load()
	if r := w.c.Local.LastHolder(at.want.Key); r != nil {
		return at, r
	}
	return at, at.holder.Load()
}

// keep adds what is held while more keys are acquired.
func (w *allWaiter) keep(held ...Holding) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = append(w.held, held...)
}

// takeHeld returns what is held, once: whoever has it gives it back.
func (w *allWaiter) takeHeld() []Holding {
	w.mu.Lock()
	defer w.mu.Unlock()
	held := w.held
	w.held = nil
	return held
}

// giveUp gives the task up. It also returns the held locks, which the caller gives back at
// once: the task may have a request under way, and gives back a lock that this brings.
func (w *allWaiter) giveUp() (held []Holding, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.abandon() {
		return nil, false
	}
	held, w.held = w.held, nil
	return held, true
}
