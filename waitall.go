package leasehold

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// maxRefusals is how many transactions of AcquireAll may be refused before it
// takes its keys one by one. While it holds nothing, callers who want fewer keys
// could overtake it for ever.
const maxRefusals = 5

// allWaiter acquires several keys for one AcquireAll call. Like a waiter it runs on
// a goroutine of its own.
type allWaiter struct {
	c     *Client
	parts []*waiter              // in order of their keys
	at    atomic.Pointer[waiter] // the part that is waited for, for the caller
	began decide.Instant

	*task
	held    []*holding // taken one by one so far; task.mu guards it
	granted []*holding // in order of parts; or
	err     error      // once the task is done
}

func newAllWaiter(ctx context.Context, c *Client, wants []*request) *allWaiter {
	w := &allWaiter{c: c, task: newTask(ctx), began: c.now()}
	for _, want := range wants {
		w.parts = append(w.parts, w.waiter(c, want))
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
		w.c.giveBack(held)
		w.giveUpUnanswered()
		w.passTurns()
		return
	}
	for i, part := range w.parts {
		part.leaveTried()
		w.c.lines.Granted(part.want.key, held[i])
	}
	w.granted = held
}

// acquire asks for the keys until all are granted, one is refused, or nobody
// waits. The caller gives back what it returns together with an error.
func (w *allWaiter) acquire() ([]*holding, error) {
	together := len(w.parts) > 1 && len(w.parts) <= attempts.MaxTransact
	pauses := w.c.waitPauses()
	for refusals := 0; together && refusals < maxRefusals; {
		if err := w.awaitFree(); err != nil {
			return nil, err
		}
		if all, err := w.takeTurns(); err != nil {
			return nil, err
		} else if !all { // somebody else may have it by now
			refusals++
			continue
		}
		held, err := w.take()
		f := attempts.FailureOf(err)
		switch {
		case held != nil || err != nil && f == nil:
			return held, err
		case f == nil: // applied, but not confirmed
			continue
		case f.Cause == decide.Refused:
			// The transaction is too large, or transactions are not allowed. One
			// by one may work, or shows which key the error is about.
			together = false
			continue
		case f.Cause == decide.ConditionFailed:
			refusals++
			pauses.Reset()
			continue
		}
		if err := w.pauseToRetry(&pauses); err != nil {
			return nil, err
		}
	}
	return w.inOrder()
}

// pauseToRetry pauses before a request is repeated; an error ends the waiting.
func (w *allWaiter) pauseToRetry(pauses *attempts.Pauses) error {
	at := w.at.Load()
	if at.want.noWait && w.c.now().Mono-w.began.Mono > tryFor {
		return at.timeoutError()
	}
	if !w.c.requests.Pause(w.ctx, pauses) {
		return ErrClosed // nobody reads it
	}
	return nil
}

// awaitFree waits until no key is known to be held, and holds none meanwhile. It
// waits for one held key after the other.
func (w *allWaiter) awaitFree() error {
	for {
		part, err := w.firstBlocked()
		if part == nil || err != nil {
			return err
		}
		if !part.want.noWait {
			if err := w.waitFor(part); err != nil {
				return err
			}
		}
		if _, err := w.only(part, w.began).await(); err != nil {
			return err
		}
	}
}

// firstBlocked returns the first part that cannot be taken now; nil if all can be.
func (w *allWaiter) firstBlocked() (*waiter, error) {
	u := w.c.chance()
	for _, part := range w.parts {
		if err := part.failed(refreshing, part.refresh()); err != nil {
			return nil, err
		}
		if move, wait := part.next(u); move == decide.Look || wait > 0 {
			return part, nil
		}
	}
	return nil, nil
}

// take sends one transaction of grants. Holdings end the waiting, and so does an
// error that is no attempts.Failure. Neither: it was applied, but the records do
// not confirm it.
func (w *allWaiter) take() ([]*holding, error) {
	over := make([]bool, len(w.parts))
	for i, part := range w.parts {
		over[i] = part.isDead()
		err := part.record.prepare(over[i])
		if errors.Is(err, errSessionLives) {
			return nil, &attempts.Failure{Cause: decide.Unreachable, Err: err}
		}
		if f := attempts.FailureOf(err); f != nil {
			part.report(f.Err)
		}
		if err != nil {
			return nil, err
		}
	}
	made := make([]attempt, len(w.parts))
	parts := make([]attempts.Part[attempt], len(w.parts))
	for i, part := range w.parts {
		part.session = w.parts[len(w.parts)-1].session // one for all, if it changed meanwhile
		a, write := part.record.grant(over[i])
		made[i], parts[i] = a, attempts.Part[attempt]{Sequence: &part.tried, Attempt: a, Write: write}
	}
	w.requests++
	t, err := attempts.Together(context.WithoutCancel(w.ctx), w.c.requests, w.parts[0].want.grantWithin(w.parts[0].session), parts)
	for _, part := range w.parts {
		part.leaveOldest()
	}
	switch {
	case t.Effect == decide.Applied:
		return w.confirm(made)
	case t.Cause == decide.ConditionFailed:
		w.at.Load().lastErr.Store(&err) // err does not change after this
		if len(t.Reasons) == len(w.parts) {
			applied, err := w.refused(made, t.Reasons)
			if err != nil {
				return nil, err
			}
			if applied {
				return w.confirm(made)
			}
		}
	default:
		w.at.Load().report(err)
		if t.Cause == decide.Busy {
			w.c.throttled(w.ctx, w.parts[0].want.key, 0)(err)
		}
	}
	return nil, &attempts.Failure{Cause: t.Cause, Err: err}
}

// refused looks at the records that made a transaction of grants fail. If one of
// them shows this very attempt, the transaction was delivered twice, and the first
// delivery was applied.
func (w *allWaiter) refused(made []attempt, reasons []decide.Reason) (applied bool, err error) {
	for i, part := range w.parts {
		if reasons[i].Cause != decide.ConditionFailed {
			continue
		}
		item := reasons[i].Old
		if item == nil { // there is none, or the engine does not return it
			var err error
			if item, err = w.c.requests.Read(context.WithoutCancel(w.ctx), protocol.Key(part.want.key)); err != nil {
				continue // unknown as before
			}
		}
		part.tried.Drop(made[i].version)
		if err := part.observeRejection(item); err != nil {
			return false, err
		}
		applied = applied || part.seen != nil && part.seen.Version == made[i].version
	}
	return applied, nil
}

// errTooLate is why a transaction whose records cannot be read is sent anew.
var errTooLate = errors.New("half of its trust is over")

// confirm reads the records that a transaction of grants has written: its reply
// does not show tokens, data and attributes. Trust counts from before the
// transaction was sent. Once half of it is over, a new transaction is sent.
func (w *allWaiter) confirm(made []attempt) ([]*holding, error) {
	keys := make([]Key, len(w.parts))
	for i, part := range w.parts {
		keys[i] = part.want.key
	}
	var items map[Key]protocol.Item
	worthHaving := func() bool { return made[0].isWorthHaving(w.parts[0].want.timing, w.c.now()) }
	err := w.c.requests.Repeat(w.ctx, func() error {
		found, requests, err := w.c.readAll(w.ctx, keys)
		w.requests += requests
		items = found
		return err
	}, func(f *attempts.Failure) error {
		if !worthHaving() {
			return errTooLate
		}
		w.at.Load().report(f.Err)
		return nil
	})
	if err == nil && w.ctx.Err() == nil && worthHaving() {
		return w.newHoldings(made, items)
	}
	w.addUnanswered(made)
	switch f := attempts.FailureOf(err); {
	case w.ctx.Err() != nil:
		return nil, ErrClosed // nobody reads it
	case f != nil && f.Cause == decide.Refused:
		return nil, opError("acquire", w.c.cfg.Table, keys[0], f.Err)
	}
	return nil, nil
}

// newHoldings makes holdings of a transaction that was applied, if every record still
// shows it. If one does not, as after a Break, the others are freed at once.
func (w *allWaiter) newHoldings(attempts []attempt, items map[Key]protocol.Item) ([]*holding, error) {
	records := make([]Record, len(w.parts))
	for i, part := range w.parts {
		var err error
		item := items[part.want.key]
		if item != nil {
			records[i], err = w.c.decode(part.want.key, item)
		}
		if err == nil && item != nil && records[i].Grant == attempts[i].version && !records[i].Released {
			continue
		}
		w.addUnanswered(attempts)
		if err == nil {
			err = part.observe(item)
		}
		if err == nil {
			w.giveUpUnanswered()
		}
		return nil, err
	}
	held := make([]*holding, len(w.parts))
	for i, part := range w.parts {
		held[i] = part.newHolding(attempts[i], records[i])
	}
	return held, nil
}

// addUnanswered remembers a transaction whose effect is not known.
func (w *allWaiter) addUnanswered(attempts []attempt) {
	for i, part := range w.parts {
		part.addUnanswered(attempts[i])
	}
}

// giveUpUnanswered frees what attempts without an answer may have taken. From here
// on they are unsettled. If one of them turns out to hold the key, it is taken over
// and never used: its release may still be on its way.
func (w *allWaiter) giveUpUnanswered() {
	var wg sync.WaitGroup
	for _, part := range w.parts {
		tried := part.tried.Keep(0)
		w.c.leaveUnsettled(part.want.key, attempts.Versions(tried))
		wg.Go(func() { w.c.freeUnsettled(w.ctx, part.want, tried) })
	}
	wg.Wait()
}

// inOrder takes the keys one by one. Everybody takes them in the same order, so no
// two callers wait for each other. What is held meanwhile is renewed.
func (w *allWaiter) inOrder() ([]*holding, error) {
	for {
		held, err := w.takeInOrder()
		if err != nil {
			w.c.giveBack(held)
			return nil, err
		}
		if !slices.ContainsFunc(held, func(h *holding) bool { return h.ended() != nil }) {
			for i, part := range w.parts {
				if part.want.manual {
					held[i].lease.ByHand()
				}
			}
			return held, nil
		}
		w.c.giveBack(held) // one was lost meanwhile: start again
	}
}

// takeInOrder takes one key after the other, until one is refused or lost.
func (w *allWaiter) takeInOrder() ([]*holding, error) {
	var held []*holding
	for i, part := range w.parts {
		w.setHeld(held)
		for _, later := range w.parts[i+1:] {
			w.passTurn(later)
		}
		if err := w.takeTurn(part); err != nil {
			return held, err
		}
		manual := part.want.manual
		part.want.manual = false
		h, err := w.only(part, w.c.now()).acquire()
		part.want.manual = manual
		if err != nil {
			return held, err
		}
		held = append(held, h)
		r := h.currentRecord()
		w.c.lines.ReportHolder(part.want.key, &r) // callers with NoWait need not wait for this call
		if slices.ContainsFunc(held, func(h *holding) bool { return h.ended() != nil }) {
			break
		}
	}
	return held, nil
}

// setHeld records what is held while more keys are acquired.
func (w *allWaiter) setHeld(held []*holding) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = slices.Clone(held)
}

func (w *allWaiter) heldSoFar() []*holding {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held
}
