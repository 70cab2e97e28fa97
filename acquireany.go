package leasehold

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
)

// AcquireAny acquires one of keys, the first that is free in the order given.
// While none is free it watches them all, by one read for up to 100 of them.
// Options apply to every key. With NoWait the error is a *HeldError of the first
// key that is held.
//
// A key that ctx holds already is left out, unless Reentrant is given, which
// shares that grant. The error is ErrDeadlock if there is none left that it could
// wait for, since the others sort below a key of a Group that ctx belongs to; with
// NoWait the order does not matter.
func (c *Client) AcquireAny(ctx context.Context, keys []Key, opts ...AcquireOption) (*Lock, error) {
	wants, err := c.newRequests(keys, opts)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("leasehold: acquire one of %v and others: %w", wants[0].key, context.Cause(ctx))
	}
	var seek []*request
	var deadlock error
	endless := true
	for _, want := range wants {
		h := heldKeysOf(ctx).find(c, want.key)
		if h == nil {
			err := checkOrder(ctx, c, want)
			seek, deadlock = append(seek, want), errors.Join(deadlock, err)
			endless = endless && err != nil
			continue
		}
		err := h.refuses(want)
		if err == nil {
			return h.share(ctx, want)
		}
		deadlock = errors.Join(deadlock, err)
	}
	if endless {
		return nil, deadlock
	}
	if !c.enter() {
		return nil, ErrClosed
	}
	defer c.leave()
	c.waiting.Add(1)
	defer c.waiting.Add(-1)
	began := c.now()
	p := newPicking(ctx, c, seek)
	c.detach(p.run)
	if ended := c.await(ctx, p.done); ended != nil {
		at, holder := p.waitsFor()
		if p.abandon() {
			c.cleanUp(seek[0], p.done)
			err := p.besides(c.waitEnded(at.want, holder, ended, at.lastErr.Load()))
			c.gaveUp(ctx, at.want.key, began, 0, err)
			return nil, err
		}
	}
	<-p.done
	if p.err != nil {
		c.gaveUp(ctx, seek[0].key, began, p.requests(), p.err)
		return nil, p.err
	}
	return c.granted(ctx, p.granted, began, p.requests(), false)
}

// picking seeks one of several keys on behalf of one AcquireAny call. Like
// waiter it runs on a goroutine of its own.
type picking struct {
	inTheWay atomic.Pointer[RecordError] // of one of the keys, which cannot be had for it
	c        *Client
	parts    []*choice // in the order given
	turns    chan turn
	reads    int

	*effort
	granted *holding // or
	err     error    // once the effort is done
}

// choice is one of the keys. It is sought only while it has the turn of its
// local line.
type choice struct {
	*waiter
	place *lineWaiter   // in the local line
	ready bool          // has its turn
	from  time.Duration // monotonic: other processes have theirs before
	err   error         // why it cannot be had
}

func newPicking(ctx context.Context, c *Client, wants []*request) *picking {
	p := &picking{c: c, effort: newEffort(ctx), turns: make(chan turn, len(wants))}
	for _, want := range wants {
		want.oneOfSeveral = true
		s := &waiter{c: c, want: want, effort: p.effort}
		s.view = decide.View{PollMin: c.cfg.PollMin, PollMax: c.cfg.PollMax}
		p.parts = append(p.parts, &choice{waiter: s, place: c.newLineWaiter(ctx, want, p.turns)})
	}
	return p
}

// waitsFor returns the first key that is known to be held, here or elsewhere,
// and by whom; the first key and nil if none is.
func (p *picking) waitsFor() (*choice, *Record) {
	for _, part := range p.parts {
		if r := part.holder.Load(); r != nil {
			return part, r
		}
		if r := p.c.lines.Holder(part.want.key); r != nil {
			return part, r
		}
	}
	return p.parts[0], nil
}

func (p *picking) requests() int {
	n := p.reads
	for _, part := range p.parts {
		n += part.requests
	}
	return n
}

func (p *picking) run() {
	defer p.kill()
	defer close(p.done)
	for _, part := range p.parts {
		p.c.observed.Watch(part.want.key)
		defer p.c.observed.Unwatch(part.want.key)
	}
	for _, part := range p.parts {
		p.c.lines.Join(part.place)
	}
	h, err := p.pick()
	abandoned := p.finish()
	if h == nil {
		p.err = err
	}
	if h == nil {
		p.leave(nil)
		return
	}
	p.c.lines.Granted(h.key, h)
	if !abandoned {
		p.leave(h)
		p.granted = h
		return
	}
	given := make(chan struct{})
	p.c.detach(func() { // at once, whatever there is to undo elsewhere
		defer close(given)
		h.abandon()
	})
	p.leave(h)
	<-given
}

// leave gives up every key but that of h, and whatever an attempt without an
// answer may have taken of it.
func (p *picking) leave(h *holding) {
	for _, part := range p.parts {
		if given, had := p.c.lines.Leave(part.place); had { // of this key or another
			p.c.lines.Pass(given.Of.Key, nil)
		}
	}
	for _, part := range p.parts {
		tried := part.tried.Unanswered()
		p.c.leaveUnsettled(part.want.key, attempts.Versions(tried))
		if h != nil && h.key == part.want.key {
			continue
		}
		if part.ready {
			p.c.lines.PassAfter(part.want.key, nil, part.from-p.c.now().Mono)
		}
		undo := func() { p.c.freeUnsettled(p.life, part.want, tried) }
		if part.want.manual { // then nothing may be left in the background
			undo()
		} else {
			p.c.detach(undo)
		}
	}
}

// pick asks for the keys until one is granted, none can be had, or nobody waits.
func (p *picking) pick() (*holding, error) {
	began := p.c.now()
	pauses := p.c.waitPauses()
	for {
		p.collect()
		h, next, err := p.takeFirst()
		if h != nil || err != nil {
			return h, err
		}
		if err := p.hopeless(); err != nil {
			return nil, err
		}
		if next.failed {
			next.wait = min(next.wait, p.c.requests.NextPause(&pauses))
		} else {
			pauses.Reset()
		}
		if late := p.c.now().Mono-began.Mono > tryFor; p.noWait() && (late || !next.failed && next.wait > 0) {
			return nil, p.held(late)
		}
		if p.await(next.wait) && next.look {
			if err := p.look(); err != nil {
				return nil, err
			}
		}
		if p.life.Err() != nil {
			return nil, ErrClosed // nobody reads it
		}
	}
}

func (p *picking) noWait() bool { return p.parts[0].want.noWait }

// collect takes the turns that have come, without waiting for any.
func (p *picking) collect() {
	for {
		select {
		case given := <-p.turns:
			p.seek(given)
		default:
			return
		}
	}
}

// seek makes the key of a turn one that is sought.
func (p *picking) seek(given turn) {
	for _, part := range p.parts {
		if part.place == given.Of {
			part.ready, part.from = true, p.c.now().Mono+given.Delay
		}
	}
}

// await waits for that long, or until a turn has come; it reports whether the
// time has passed.
func (p *picking) await(d time.Duration) bool {
	var over <-chan time.Time
	if d < math.MaxInt64 {
		t := time.NewTimer(d)
		defer t.Stop()
		over = t.C
	}
	select {
	case <-over:
		return true
	case given := <-p.turns:
		p.seek(given)
	case <-p.life.Done():
	}
	return false
}

// next is what to do when no key was free.
type next struct {
	wait   time.Duration
	look   bool // and then look at all, rather than take one that is due
	failed bool // a request is to be repeated
}

// takeFirst takes the first key that may be taken now.
func (p *picking) takeFirst() (*holding, next, error) {
	n := next{wait: math.MaxInt64}
	u := p.c.chance()
	for _, part := range p.parts {
		now := p.c.now().Mono
		if !part.ready || p.life.Err() != nil {
			continue
		}
		if ok, err := p.watchSession(part, &n); err != nil {
			return nil, n, err
		} else if !ok {
			continue
		}
		move, wait := decide.Next(part.view, now, u)
		if now < part.from {
			move, wait = decide.Take, part.from-now
		}
		if move == decide.Look || wait > 0 {
			if wait < n.wait {
				n.wait, n.look = wait, move == decide.Look
			}
			continue
		}
		h, failed, err := p.takeUntilAnswered(part)
		if h != nil || err != nil {
			return h, n, err
		}
		n.failed = n.failed || failed
		if failed || !part.ready {
			continue
		}
		if ok, err := p.watchSession(part, &n); err != nil { // of the holder just met
			return nil, n, err
		} else if !ok {
			continue
		}
		if move, wait := decide.Next(part.view, p.c.now().Mono, u); wait < n.wait {
			n.wait, n.look = wait, move == decide.Look
		}
	}
	return nil, n, nil
}

// watchSession enters until when a session keeps the holder of a key alive.
// False: that cannot be told now, or ever.
func (p *picking) watchSession(part *choice, n *next) (bool, error) {
	err := part.watchSession()
	f := attempts.FailureOf(err)
	switch {
	case err == nil:
		return true, nil
	case f == nil: // damaged: one of the others may do
		p.drop(part, err)
		return false, nil
	case f.Cause == decide.Refused:
		return false, opError("acquire", p.c.cfg.Table, part.want.key, f.Err)
	}
	part.fails(f.Err)
	n.failed, n.wait = true, min(n.wait, p.c.cfg.PollMax)
	return false, nil
}

// takeUntilAnswered stays with one key until it is known whether it is had: to
// go on to the next after a grant of unknown effect could end with two.
func (p *picking) takeUntilAnswered(part *choice) (h *holding, failed bool, err error) {
	began := p.c.now()
	pauses := p.c.waitPauses()
	for {
		move, _ := decide.Next(part.view, p.c.now().Mono, 0)
		h, err := part.take(move == decide.TakeOver)
		f := attempts.FailureOf(err)
		switch {
		case h != nil:
			return h, false, nil
		case err == nil: // held, or its holder's session lives
			return nil, false, nil
		case f == nil: // not there, or damaged: one of the others may do
			p.drop(part, err)
			return nil, false, nil
		case f.Cause == decide.ConditionFailed:
			return nil, false, nil
		}
		part.fails(f.Err)
		switch f.Cause {
		case decide.Refused:
			return nil, false, opError("acquire", p.c.cfg.Table, part.want.key, f.Err)
		case decide.Busy:
			p.c.throttled(p.life, part.want.key, 0)(f.Err)
			if len(part.tried.Versions()) == 0 {
				return nil, true, nil
			}
		}
		if p.noWait() && p.c.now().Mono-began.Mono > tryFor {
			return nil, true, nil
		}
		if !p.c.requests.Pause(p.life, &pauses) {
			return nil, true, nil
		}
	}
}

// drop leaves a key out that cannot be had.
func (p *picking) drop(part *choice, err error) {
	part.err, part.ready = err, false
	if bad := (*RecordError)(nil); errors.As(err, &bad) {
		p.inTheWay.Store(bad)
		p.c.waitFails.warn(p.life, p.c, part.want.key, err)
		p.c.emit(p.life, Event{Kind: EventWaitError, Key: part.want.key, Err: err})
	}
	p.c.lines.Pass(part.want.key, nil)
}

// besides has the error of a wait say which record is in the way of another key.
func (p *picking) besides(err error) error {
	held, ok := err.(*HeldError) // made just now, never wrapped
	if bad := p.inTheWay.Load(); ok && bad != nil {
		held.Err = errors.Join(held.Err, bad)
	}
	return err
}

// hopeless returns why none of the keys can be had, nil while one may.
func (p *picking) hopeless() error {
	var errs []error
	for _, part := range p.parts {
		if part.err == nil {
			return nil
		}
		errs = append(errs, part.err)
	}
	return errors.Join(errs...)
}

// held is the error of a try, which was late if DynamoDB has not answered: of
// the first key that is in use, or has had no answer.
func (p *picking) held(late bool) error {
	silent := p.parts[0]
	for _, part := range p.parts {
		switch {
		case part.err != nil:
			continue
		case part.seen != nil:
			return p.besides(part.held())
		case !part.ready || !late: // another goroutine's of this client, or other processes' turn
			holder := p.c.lines.Holder(part.want.key)
			if holder == nil {
				holder = &Record{Key: part.want.key, Owner: p.c.owner}
			}
			return p.besides(p.c.heldError(part.want.key, *holder, nil))
		case part.lastErr.Load() != nil:
			return part.gaveUp()
		}
		silent = part // seen free last, and not had by now
	}
	return silent.gaveUp()
}

// look reads the records of all keys that are sought.
func (p *picking) look() error {
	var keys []Key
	for _, part := range p.parts {
		if part.ready {
			keys = append(keys, part.want.key)
		}
	}
	items, requests, err := p.c.readAll(p.life, keys)
	f := attempts.FailureOf(err)
	p.reads += requests
	for _, part := range p.parts {
		switch {
		case !part.ready:
		case f != nil:
			part.fails(f.Err)
		default:
			if err := part.see(items[part.want.key]); err != nil {
				p.drop(part, err)
			}
		}
	}
	switch {
	case f == nil:
	case f.Cause == decide.Refused:
		return opError("acquire", p.c.cfg.Table, keys[0], f.Err)
	case f.Cause == decide.Busy:
		p.c.emit(p.life, Event{Kind: EventThrottled, Key: keys[0], Requests: requests, Err: f.Err})
	}
	return nil
}
