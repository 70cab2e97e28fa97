package seek

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

// allWaiter acquires several keys for one AcquireAll call: two at least. Like a waiter
// it runs on a goroutine of its own.
type allWaiter struct {
	c     *Client
	parts []*waiter              // in order of their keys
	at    atomic.Pointer[waiter] // the part that is waited for, for the caller
	began decide.Instant

	*task
	held []Holding // so far, in order of parts, to be given back with err; task.mu guards it until the task is done
	err  error     // once the task is done; nil: all are held
}

func newAllWaiter(ctx context.Context, c *Client, wants []*Want) *allWaiter {
	w := &allWaiter{c: c, task: newTask(ctx), began: c.Now()}
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
		w.c.GiveBack(w.takeHeld())
		w.giveUpUnanswered()
		w.passTurns()
		return
	}
	for i, part := range w.parts {
		part.leaveTried()
		w.c.Lines.Granted(part.want.Key, held[i])
	}
}

// acquire asks for the keys until all are granted, one is refused, or nobody
// waits. With an error it returns none.
func (w *allWaiter) acquire() ([]Holding, error) {
	together := len(w.parts) <= attempts.MaxTransact
	pauses := w.c.Pauses()
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
		case f == nil:
			// Applied, but not confirmed. One by one a grant shows its record itself.
			w.giveUpUnanswered()
			together = false
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
	if at.want.NoWait && w.isLate(w.began, w.c.Now()) {
		return at.timeoutError(w.began)
	}
	if !w.c.Requests.Pause(w.ctx, pauses) {
		return w.ctx.Err() // nobody reads it
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
		if !part.want.NoWait || part.isWatched() {
			if err := w.waitFor(part); err != nil {
				return err
			}
		}
		if _, err := w.only(part, w.began).await(); err != nil {
			return err
		}
	}
}

// firstBlocked returns the first part that cannot be taken now; nil if all can be. One
// whose holder looks dead comes last: it is watched in vain if another lives.
func (w *allWaiter) firstBlocked() (*waiter, error) {
	u := w.c.Chance()
	var watched *waiter
	for _, part := range w.parts {
		if err := part.failed(refreshing, part.refresh()); err != nil {
			return nil, err
		}
		if move, wait := part.next(u); move != decide.Look && wait == 0 {
			continue
		}
		if !part.isWatched() {
			return part, nil
		}
		if watched == nil {
			watched = part
		}
	}
	return watched, nil
}

// take sends one transaction of grants. Holdings end the waiting, and so does an
// error that is no attempts.Failure. Neither: it was applied, but the records do
// not confirm it.
func (w *allWaiter) take() ([]Holding, error) {
	takeOver := make([]bool, len(w.parts))
	for i, part := range w.parts {
		takeOver[i] = part.isDead()
		err := part.record.prepare(takeOver[i])
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
	made := make([]Attempt, len(w.parts))
	parts := make([]attempts.Part[Attempt], len(w.parts))
	for i, part := range w.parts {
		part.session = w.parts[len(w.parts)-1].session // one for all, if it changed meanwhile
		a, write := part.record.grant(takeOver[i])
		made[i], parts[i] = a, attempts.Part[Attempt]{Sequence: &part.tried, Attempt: a, Write: write}
	}
	w.requests++
	t, err := attempts.Together(w.values, w.c.Requests, w.parts[0].want.Within(w.parts[0].session), parts)
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
			w.c.Listener.Throttled(w.ctx, w.parts[0].want.Key, 1, err)
		}
	}
	return nil, &attempts.Failure{Cause: t.Cause, Err: err}
}

// refused looks at the records that made a transaction of grants fail. If one of
// them shows this very attempt, the transaction was delivered twice, and the first
// delivery was applied.
func (w *allWaiter) refused(made []Attempt, reasons []decide.Reason) (applied bool, err error) {
	for i, part := range w.parts {
		if reasons[i].Cause != decide.ConditionFailed {
			continue
		}
		item := reasons[i].Old
		if item == nil { // there is none, or the engine does not return it
			var err error
			if item, err = w.c.Requests.Read(w.values, part.want.Key); err != nil {
				continue // unknown as before
			}
		}
		part.tried.Drop(made[i].Version)
		if err := part.observeRejection(item); err != nil {
			return false, err
		}
		applied = applied || part.seen != nil && part.seen.Version == made[i].Version
	}
	return applied, nil
}

// confirmFor is how long the records of a transaction are read before it is given up.
const confirmFor = TryFor / 2

// errTooLate is why a transaction whose records cannot be read is given up.
var errTooLate = errors.New("its records cannot be read in time")

// confirm reads the records that a transaction of grants has written: its reply
// does not show tokens, data and attributes. Trust counts from before the
// transaction was sent. Once half of it is over, or confirmFor, the grants are of no use.
func (w *allWaiter) confirm(made []Attempt) ([]Holding, error) {
	keys := make([]protocol.Key, len(w.parts))
	for i, part := range w.parts {
		keys[i] = part.want.Key
	}
	var items map[protocol.Key]protocol.Item
	worthHaving := func() bool { return made[0].isWorthHaving(w.parts[0].want.Timing, w.c.Now()) }
	err := w.c.Requests.Repeat(w.ctx, func() error {
		found, requests, err := w.c.Requests.ReadAll(w.ctx, keys)
		w.requests += requests
		items = found
		return err
	}, func(f *attempts.Failure) error {
		if !worthHaving() || w.c.Now().Mono-made[0].Sent.Mono > confirmFor {
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
		return nil, w.ctx.Err() // nobody reads it
	case f != nil && f.Cause == decide.Refused:
		return nil, w.c.Errors.Failed("acquire", keys[0], f.Err)
	}
	return nil, nil
}

// newHoldings makes holdings of a transaction that was applied, if every record still
// shows it. If one does not, as after a Break, all are unanswered: the caller frees them.
func (w *allWaiter) newHoldings(attempts []Attempt, items map[protocol.Key]protocol.Item) ([]Holding, error) {
	records := make([]protocol.Record, len(w.parts))
	for i, part := range w.parts {
		var err error
		item := items[part.want.Key]
		if item != nil {
			records[i], err = w.c.Observer.Decode(part.want.Key, item)
		}
		if err == nil && item != nil && records[i].Grant == attempts[i].Version && !records[i].Released {
			continue
		}
		w.addUnanswered(attempts)
		if err == nil {
			err = part.observe(item)
		}
		return nil, err
	}
	held := make([]Holding, len(w.parts))
	for i, part := range w.parts {
		held[i] = part.newHolding(attempts[i], records[i])
	}
	w.keep(held...)
	return held, nil
}

// addUnanswered remembers a transaction whose effect is not known.
func (w *allWaiter) addUnanswered(attempts []Attempt) {
	for i, part := range w.parts {
		part.tried.Add(attempts[i])
	}
}

// giveUpUnanswered frees what attempts without an answer may have taken. From here
// on they are unsettled. If one of them turns out to hold the key, it is taken over
// and never used: its release may still be on its way.
func (w *allWaiter) giveUpUnanswered() {
	var wg sync.WaitGroup
	for _, part := range w.parts {
		tried := part.tried.Keep(0)
		w.c.leaveUnsettled(part.want.Key, attempts.Versions(tried))
		wg.Go(func() { w.c.freeUnsettled(w.values, part.want, tried) })
	}
	wg.Wait()
}

// inOrder takes the keys one by one. Everybody takes them in the same order, so no
// two callers wait for each other. What is held meanwhile is renewed.
func (w *allWaiter) inOrder() ([]Holding, error) {
	for {
		held, err := w.takeInOrder()
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(held, func(h Holding) bool { return h.Lease().Ended() != nil }) {
			for i, part := range w.parts {
				if part.want.Manual {
					held[i].Lease().ByHand()
				}
			}
			return held, nil
		}
		w.c.GiveBack(w.takeHeld()) // one was lost meanwhile: start again
	}
}

// takeInOrder takes one key after the other, until one is refused or lost.
func (w *allWaiter) takeInOrder() ([]Holding, error) {
	var held []Holding
	for i, part := range w.parts {
		for _, later := range w.parts[i+1:] {
			w.passTurn(later)
		}
		if err := w.takeTurn(part); err != nil {
			return nil, err
		}
		manual := part.want.Manual
		part.want.Manual = false
		_, h, err := w.only(part, w.began).acquire()
		part.want.Manual = manual
		if err != nil {
			return nil, err
		}
		held = append(held, h)
		w.keep(h)
		r := h.Lease().Record()
		w.c.Lines.ReportHolder(part.want.Key, &r) // callers with NoWait need not wait for this call
		if slices.ContainsFunc(held, func(h Holding) bool { return h.Lease().Ended() != nil }) {
			break
		}
	}
	return held, nil
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

// giveUp is that of the task. It also returns what is held, which the caller gives back at
// once: the task may have a request under way, and gives back what that brings.
func (w *allWaiter) giveUp() (held []Holding, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.abandon() {
		return nil, false
	}
	held, w.held = w.held, nil
	return held, true
}
