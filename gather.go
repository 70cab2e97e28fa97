package leasehold

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// maxRefusals is how often AcquireAll is refused before it takes its keys one
// by one: holding nothing, it could be overtaken for ever by those who want
// fewer keys.
const maxRefusals = 5

// gathering seeks several keys on behalf of one AcquireAll call, from the
// moment the call has its turn in each local line. Like waiter it runs on a
// goroutine of its own.
type gathering struct {
	c     *Client
	parts []*waiter              // in order of their keys
	sent  int                    // requests of all parts together
	at    atomic.Pointer[waiter] // the part that is waited for, for the caller
	turns map[*waiter]bool       // the parts that have the turn of their local line

	*effort
	inHand  []*holding // taken one by one so far; effort.mu guards it
	granted []*holding // in order of parts; or
	err     error      // once the effort is done
}

func newGathering(ctx context.Context, c *Client, wants []*request) *gathering {
	g := &gathering{c: c, effort: newEffort(ctx), turns: map[*waiter]bool{}}
	for _, want := range wants {
		g.parts = append(g.parts, &waiter{c: c, want: want, effort: g.effort})
	}
	g.at.Store(g.parts[0])
	return g
}

func (g *gathering) requests() int {
	n := g.sent
	for _, part := range g.parts {
		n += part.requests
	}
	return n
}

func (g *gathering) run() {
	defer g.kill()
	defer close(g.done)
	for _, part := range g.parts {
		g.c.observed.Watch(part.want.key)
		defer g.c.observed.Unwatch(part.want.key)
	}
	held, err := g.gather()
	if g.finish() || err != nil {
		g.err = err
		g.c.giveBack(held)
		g.disown()
		g.passTurns()
		return
	}
	for i, part := range g.parts {
		// An earlier attempt may land yet, once the key is free again.
		g.c.leaveUnsettled(part.want.key, attempts.Versions(part.tried.Unanswered()))
		g.c.lines.Granted(part.want.key, held[i])
	}
	g.granted = held
}

// gather asks for the keys until all are granted, one is refused, or nobody
// waits. What it returns with an error is still to be given back.
func (g *gathering) gather() ([]*holding, error) {
	began := g.c.now()
	for _, part := range g.parts {
		part.view = decide.View{PollMin: g.c.cfg.PollMin, PollMax: g.c.cfg.PollMax}
	}
	together := len(g.parts) > 1 && len(g.parts) <= attempts.MaxTransact
	pauses := g.c.waitPauses()
	for refusals := 0; together && refusals < maxRefusals; {
		if err := g.awaitFree(began); err != nil {
			return nil, err
		}
		if all, err := g.takeTurns(); err != nil {
			return nil, err
		} else if !all { // somebody else's by now
			refusals++
			continue
		}
		held, err := g.take()
		f := attempts.FailureOf(err)
		switch {
		case held != nil || err != nil && f == nil:
			return held, err
		case f == nil: // applied, but not confirmed
			continue
		case f.Cause == decide.Refused:
			// Too large for one transaction, or transactions are not allowed:
			// one by one it may be, or the error is of a single key.
			together = false
			continue
		case f.Cause == decide.ConditionFailed:
			refusals++
			pauses.Reset()
			continue
		}
		if err := g.again(began, &pauses); err != nil {
			return nil, err
		}
	}
	return g.inOrder()
}

// again pauses before a request is repeated.
func (g *gathering) again(began decide.Instant, pauses *attempts.Pauses) error {
	at := g.at.Load()
	if at.want.noWait && g.c.now().Mono-began.Mono > tryFor {
		return at.gaveUp()
	}
	if !g.c.requests.Pause(g.life, pauses) {
		return ErrClosed // nobody reads it
	}
	return nil
}

// awaitFree waits, holding nothing, until no key is known to be held: for the
// first that is, then for the next.
func (g *gathering) awaitFree(began decide.Instant) error {
	pauses := g.c.waitPauses()
	var waitsFor *waiter
	for {
		if at, err := g.watchSessions(); err != nil {
			if err := g.failed(at, err, began, &pauses); err != nil {
				return err
			}
			continue
		}
		part, move, wait := g.blocked()
		if g.life.Err() != nil {
			return ErrClosed // nobody reads it
		}
		if part == nil {
			return nil
		}
		if part.want.noWait {
			return part.held()
		}
		if waitsFor != part {
			waitsFor = part
			if err := g.waitFor(part); err != nil {
				return err
			}
			continue // it may have been free meanwhile
		}
		attempts.Wait(g.life, wait)
		if g.life.Err() != nil || move == decide.TakeOver {
			continue // to a look at the clock: at its holder's death the key is not blocked any more
		}
		if err := part.look(); err != nil {
			if err := g.failed(part, err, began, &pauses); err != nil {
				return err
			}
			continue
		}
		pauses.Reset()
	}
}

// failed pauses after a read of part s without success; an error ends the
// gathering.
func (g *gathering) failed(part *waiter, err error, began decide.Instant, pauses *attempts.Pauses) error {
	f := attempts.FailureOf(err)
	if f == nil {
		return err
	}
	part.fails(f.Err)
	if f.Cause == decide.Refused {
		return opError("acquire", g.c.cfg.Table, part.want.key, f.Err)
	}
	return g.again(began, pauses)
}

// watchSessions enters until when the holders' sessions keep them alive, and
// says of which part the error is if that cannot be told.
func (g *gathering) watchSessions() (*waiter, error) {
	for _, part := range g.parts {
		if err := part.watchSession(); err != nil {
			return part, err
		}
	}
	return nil, nil
}

// blocked returns the first part that cannot be taken now, and what to do about
// it.
func (g *gathering) blocked() (*waiter, decide.Move, time.Duration) {
	now, u := g.c.now().Mono, g.c.chance()
	for _, part := range g.parts {
		if move, wait := decide.Next(part.view, now, u); move == decide.Look || wait > 0 {
			return part, move, wait
		}
	}
	return nil, decide.Take, 0
}

// take sends one transaction of grants. Holdings, or an error that is no
// attempts.Failure, end the gathering; neither: it was applied, and something is
// still to be found out.
func (g *gathering) take() ([]*holding, error) {
	now := g.c.now().Mono
	over := make([]bool, len(g.parts))
	for i, part := range g.parts {
		move, _ := decide.Next(part.view, now, 0)
		over[i] = move == decide.TakeOver
		err := part.ready(over[i])
		if errors.Is(err, errSessionLives) {
			return nil, &attempts.Failure{Cause: decide.Unreachable, Err: err}
		}
		if f := attempts.FailureOf(err); f != nil {
			part.fails(f.Err)
		}
		if err != nil {
			return nil, err
		}
	}
	made := make([]attempt, len(g.parts))
	parts := make([]attempts.Part[attempt], len(g.parts))
	for i, part := range g.parts {
		part.session = g.parts[len(g.parts)-1].session // one for all, if it changed meanwhile
		a, w := part.next(over[i])
		made[i], parts[i] = a, attempts.Part[attempt]{Sequence: &part.tried, Attempt: a, Write: w}
	}
	g.sent++
	t, err := attempts.Together(context.WithoutCancel(g.life), g.c.requests, g.parts[0].want.grantWithin(g.parts[0].session), parts)
	for _, part := range g.parts {
		part.limit()
	}
	switch {
	case t.Effect == decide.Applied:
		return g.confirm(made)
	case t.Cause == decide.ConditionFailed:
		g.at.Load().lastErr.Store(&err) // err does not change after this
		if len(t.Reasons) == len(g.parts) {
			applied, err := g.refused(made, t.Reasons)
			if err != nil {
				return nil, err
			}
			if applied {
				return g.confirm(made)
			}
		}
	default:
		g.at.Load().fails(err)
		if t.Cause == decide.Busy {
			g.c.throttled(g.life, g.parts[0].want.key, 0)(err)
		}
	}
	return nil, &attempts.Failure{Cause: t.Cause, Err: err}
}

// refused looks at the records that a transaction of grants met. One that shows
// this very attempt says that all of it was applied: it was delivered twice.
func (g *gathering) refused(made []attempt, reasons []decide.Reason) (applied bool, err error) {
	for i, part := range g.parts {
		if reasons[i].Cause != decide.ConditionFailed {
			continue
		}
		item := reasons[i].Old
		if item == nil { // there is none, or the engine does not return it
			var err error
			if item, err = g.c.requests.Read(context.WithoutCancel(g.life), protocol.Key(part.want.key)); err != nil {
				continue // unknown as before
			}
		}
		if err := part.met(item); err != nil {
			return false, err
		}
		applied = applied || part.seen != nil && part.seen.Version == made[i].version
	}
	return applied, nil
}

// errTooLate is why a transaction that cannot be read back is sent anew.
var errTooLate = errors.New("half of its trust is over")

// confirm reads what a transaction of grants has written, which it did not
// return: tokens, data and attributes. Trust counts from before it was sent;
// when half of that is gone, another takes its place.
func (g *gathering) confirm(made []attempt) ([]*holding, error) {
	keys := make([]Key, len(g.parts))
	for i, part := range g.parts {
		keys[i] = part.want.key
	}
	var items map[Key]protocol.Item
	worthHaving := func() bool { return made[0].isWorthHaving(g.parts[0].want.timing, g.c.now()) }
	err := g.c.requests.Repeat(g.life, func() error {
		found, requests, err := g.c.readAll(g.life, keys)
		g.sent += requests
		items = found
		return err
	}, func(f *attempts.Failure) error {
		if !worthHaving() {
			return errTooLate
		}
		g.at.Load().fails(f.Err)
		return nil
	})
	if err == nil && g.life.Err() == nil && worthHaving() {
		return g.hold(made, items)
	}
	g.note(made)
	switch f := attempts.FailureOf(err); {
	case g.life.Err() != nil:
		return nil, ErrClosed // nobody reads it
	case f != nil && f.Cause == decide.Refused:
		return nil, opError("acquire", g.c.cfg.Table, keys[0], f.Err)
	}
	return nil, nil
}

// hold makes holdings of a transaction that has landed, if every record still
// shows it. If one does not, as after a Break, the others are freed before
// anything is waited for.
func (g *gathering) hold(attempts []attempt, items map[Key]protocol.Item) ([]*holding, error) {
	records := make([]Record, len(g.parts))
	for i, part := range g.parts {
		var err error
		item := items[part.want.key]
		if item != nil {
			records[i], err = g.c.decode(part.want.key, item)
		}
		if err == nil && item != nil && records[i].Grant == attempts[i].version && !records[i].Released {
			continue
		}
		g.note(attempts)
		if err == nil {
			err = part.see(item)
		}
		if err == nil {
			g.disown()
		}
		return nil, err
	}
	held := make([]*holding, len(g.parts))
	for i, part := range g.parts {
		held[i] = part.hold(attempts[i], records[i])
	}
	return held, nil
}

// note remembers a transaction without an answer.
func (g *gathering) note(attempts []attempt) {
	for i, part := range g.parts {
		part.note(attempts[i])
	}
}

// disown frees what attempts without an answer may have taken. From here on
// they are unsettled: seen as holder, one is taken over by a new version, and
// never treated as held, since its release may still be on its way.
func (g *gathering) disown() {
	var wg sync.WaitGroup
	for _, part := range g.parts {
		tried := part.tried.Keep(0)
		g.c.leaveUnsettled(part.want.key, attempts.Versions(tried))
		wg.Go(func() { g.c.freeUnsettled(g.life, part.want, tried) })
	}
	wg.Wait()
}

// inOrder takes the keys one by one. Everybody takes them in the same order, so
// that nobody who holds one waits for somebody who waits for it. What is held
// meanwhile is renewed.
func (g *gathering) inOrder() ([]*holding, error) {
	for {
		held, err := g.takeInOrder()
		if err != nil {
			g.c.giveBack(held)
			return nil, err
		}
		if !slices.ContainsFunc(held, func(h *holding) bool { return h.ended() != nil }) {
			for i, part := range g.parts {
				if part.want.manual {
					held[i].lease.ByHand()
				}
			}
			return held, nil
		}
		g.c.giveBack(held) // one was lost on the way: again from the first
	}
}

// takeInOrder takes one key after the other, until one is refused or lost.
func (g *gathering) takeInOrder() ([]*holding, error) {
	var held []*holding
	for i, part := range g.parts {
		g.takes(held)
		for _, later := range g.parts[i+1:] {
			g.passTurn(later)
		}
		if err := g.takeTurn(part); err != nil {
			return held, err
		}
		manual := part.want.manual
		part.want.manual = false
		h, err := part.seek()
		part.want.manual = manual
		if err != nil {
			return held, err
		}
		held = append(held, h)
		r := h.currentRecord()
		g.c.lines.ReportHolder(part.want.key, &r) // those who do not want to wait need not
		if slices.ContainsFunc(held, func(h *holding) bool { return h.ended() != nil }) {
			break
		}
	}
	return held, nil
}

// takes makes known what is held while more is sought.
func (g *gathering) takes(held []*holding) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inHand = slices.Clone(held)
}

func (g *gathering) taken() []*holding {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.inHand
}
