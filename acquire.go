package leasehold

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Acquire waits until the key is granted or ctx ends. TryAcquire does not wait.
//
// ctx bounds the wait alone: the lock is held until it is released or lost.
// Client.Do and Lock.Bind end the work with ctx, too. If ctx ends before the key
// is granted, the error matches context.Cause(ctx) and, if somebody was seen to
// hold it, is a *HeldError. If ctx belongs to a lock of the same key, waiting
// could never end: the error is ErrDeadlock, unless Reentrant is given. Requests
// that fail are retried until ctx ends; one that DynamoDB refuses, as without
// permission, ends the wait with an *OpError.
func (c *Client) Acquire(ctx context.Context, key string, opts ...AcquireOption) (*Lock, error) {
	want, err := c.newRequest(key, opts)
	if err != nil {
		return nil, err
	}
	return c.acquireOne(ctx, &want)
}

// TryAcquire is Acquire with NoWait: it returns the lock at once, or a *HeldError.
// It takes over a dead holder's key if this client has observed the record for as
// long as its lease.
func (c *Client) TryAcquire(ctx context.Context, key string, opts ...AcquireOption) (*Lock, error) {
	return c.Acquire(ctx, key, append(slices.Clip(opts), NoWait())...)
}

// acquireOne is Acquire of a checked request.
func (c *Client) acquireOne(ctx context.Context, want *request) (*Lock, error) {
	if ctx.Err() != nil {
		return nil, c.errorf("acquire", want.key, "%w", context.Cause(ctx))
	}
	if h := heldKeysOf(ctx).find(c, want.key); h != nil {
		if err := h.refuses(want); err != nil {
			return nil, err
		}
		return h.share(ctx, want)
	}
	if err := checkOrder(ctx, c, want); err != nil {
		return nil, err
	}
	if !c.enter() {
		return nil, ErrClosed
	}
	defer c.leave()
	c.waiting.Add(1)
	defer c.waiting.Add(-1)
	return c.acquire(ctx, want)
}

// Do acquires key, calls fn and releases. It is Client.Acquire and Lock.Do in one.
// An error from before fn was called matches ErrNotRun.
func (c *Client) Do(ctx context.Context, key string, fn func(ctx context.Context, lock *Lock) error, opts ...AcquireOption) error {
	if fn == nil {
		return &notRunError{c.errorf("do", Key{Partition: key}, "the function is nil")}
	}
	lock, err := c.Acquire(ctx, key, opts...)
	if err != nil {
		return &notRunError{err}
	}
	return lock.Do(ctx, fn)
}

// acquire waits in the local line, and then for the key. A read/write lock has no line:
// several callers may be granted it.
func (c *Client) acquire(ctx context.Context, want *request) (*Lock, error) {
	began := c.now()
	var given turn
	if want.side == nil {
		var err error
		if given, err = c.awaitTurn(ctx, want); err != nil {
			c.emitGaveUp(ctx, want.key, began, 0, err)
			return nil, err
		}
	}
	if h := given.Granted; h != nil {
		return c.granted(ctx, h, began, 0, true)
	}

	return c.acquireFirst(ctx, c.newOneWaiter(ctx, want, given.Delay), began)
}

// awaitTurn takes a place in the local line and waits for its turn.
func (c *Client) awaitTurn(ctx context.Context, want *request) (turn, error) {
	w := c.newLineWaiter(ctx, want, nil)
	c.lines.Join(w)
	if holder := c.lines.Holder(want.key); holder != nil {
		c.emitOr(ctx, Event{Kind: EventWaiting, Key: want.key, Holder: holder}, func() { c.leaveLine(want, w) })
	}
	var ended error
	var late <-chan time.Time
	if want.noWait {
		timer := time.NewTimer(tryFor)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case given := <-w.Turn():
		return given, nil
	case holder := <-w.Held():
		return turn{}, c.heldError(want.key, *holder, nil)
	case <-ctx.Done():
		ended = context.Cause(ctx)
	case <-c.closing:
		ended = ErrClosed
	case <-late:
		ended = fmt.Errorf("gave up after %v behind another call that had no answer from DynamoDB", tryFor)
	}
	holder := c.lines.Holder(want.key)
	if given, had := c.lines.Leave(w); had {
		refused := make(chan struct{})
		c.detach(func() { defer close(refused); c.refuse(want, given) })
		c.cleanUp(want, refused)
	}
	return turn{}, c.waitEnded(want, holder, ended, nil)
}

// await waits until done, and returns what ended the wait before that.
func (c *Client) await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.closing:
		return ErrClosed
	}
}

// leaveLine takes a waiter out of its line, and passes on the turn it may have.
func (c *Client) leaveLine(want *request, w *lineWaiter) {
	if given, had := c.lines.Leave(w); had {
		c.refuse(want, given)
	}
}

// refuse passes on a turn whose caller has left.
func (c *Client) refuse(want *request, given turn) {
	if given.Granted != nil {
		given.Granted.giveBack()
		return
	}
	c.lines.Pass(want.key, nil)
}

// cleanUp waits, no longer than the release grace, until an ended call has undone what
// it sent. It waits only without renewal: there the process may be frozen as soon as
// the call returns.
func (c *Client) cleanUp(want *request, done <-chan struct{}) {
	if want.manual {
		c.awaitGrace(done)
	}
}

// awaitGrace waits until done, or the release grace has passed.
func (c *Client) awaitGrace(done <-chan struct{}) {
	grace := time.NewTimer(c.cfg.ReleaseGrace)
	defer grace.Stop()
	select {
	case <-done:
	case <-grace.C:
	}
}

// waitEnded is the error of a wait that was ended from outside.
func (c *Client) waitEnded(want *request, holder *Record, ended error, last *error) error {
	if holder != nil {
		return c.heldError(want.key, *holder, ended)
	}
	if last != nil {
		return &OpError{Op: "acquire", Table: c.cfg.Table, Key: want.key, Err: errors.Join(ended, *last)}
	}
	return c.errorf("acquire", want.key, "%w", ended)
}

// granted ends an Acquire that was granted h. It gives h back if the client is closing:
// Close may not have seen it.
func (c *Client) granted(ctx context.Context, h *holding, began decide.Instant, requests int, local bool) (*Lock, error) {
	if c.isClosing() {
		c.detach(h.giveBack)
		return nil, ErrClosed
	}
	c.emitOr(ctx, Event{Kind: EventGranted, Key: h.key, Token: h.token, Took: c.now().Mono - began.Mono,
		Requests: requests, TookOver: h.took != nil, Local: local}, h.giveBack)
	return h.first, nil
}

// grantLimit is the deadline of a grant's attempt: a reply is of no use after its trust
// has ended.
func (r *request) grantLimit() time.Duration { return min(attempts.Limit, r.timing.Trust()) }

// grantWithin is grantLimit under a session, nil for none: a reply is of no use after the
// trust in the session has ended either.
func (r *request) grantWithin(s *session) time.Duration {
	if s == nil {
		return r.grantLimit()
	}
	return max(min(r.grantLimit(), s.lease.Remaining()), 1)
}

// grantOf returns the grant that attempt a of a request asks for.
func (c *Client) grantOf(want *request, a attempt) protocol.Grant {
	var session string
	if a.session != nil {
		session = a.session.id
	}
	return protocol.Grant{
		Key: protocol.Key(want.key), Owner: a.owner, Session: session, Version: a.version, Lease: a.lease, Now: time.Now(),
		IfExists: want.ifExists, Changes: protocol.Changes(want.changes),
	}
}
