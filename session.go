package leasehold

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// touchEvery is how often the record of a lock under a session is renewed, and
// lockLease the lease that stands in it, for those who know nothing of sessions:
// long, so that the renewals cost little, and honest, so that such a peer waits
// rather than steals. (A lease for ever makes the Java client's arithmetic
// fail.) To us it says nothing: a touch that fails neither ends trust nor
// extends it. It tells of a Break, or of a record that was deleted.
const (
	lockLease  = time.Hour
	touchEvery = lockLease / 3
)

// session is a shared lease: one row that this client renews for all the locks
// it was granted under it. A lock under a session is trusted while both its
// record and the session are. An id is never used again.
type session struct {
	ownRow
	id     string
	queue  chan struct{} // one place: who is next to name the row in a transaction
	naming chan struct{} // one place: who names it in a transaction, or writes it

	marking chan struct{}              // one place: who tries to mark the row dead; guards the next two
	marks   attempts.Sequence[attempt] // to do so
	dead    bool                       // one has, or somebody else

	mu        sync.Mutex // guards what follows; never held across I/O
	locks     map[*holding]bool
	unsettled map[Key]*unsettledKey
}

// sharing is the session of a client, if it has Config.SharedLease.
type sharing struct {
	proto protocol.Sharing
	place chan struct{} // one place: who begins a session

	mu      sync.Mutex // guards current
	current *session
}

// errSessionOut is why nothing is granted under a session that is held on to:
// whoever can reach DynamoDB may mark it dead.
var errSessionOut = errors.New("leasehold: the shared lease has run out: it is held on to through an outage, and nothing new is granted under it")

// session returns the client's session, and begins one if there is none that
// is trusted. Nil without an error: this client's locks are renewed one by one.
func (c *Client) session(ctx context.Context) (*session, error) {
	if c.sharing == nil {
		return nil, nil
	}
	select {
	case c.sharing.place <- struct{}{}:
		defer func() { <-c.sharing.place }()
	case <-ctx.Done():
		return nil, &attempts.Failure{Cause: decide.Unreachable, Err: context.Cause(ctx)}
	}
	if c.isClosing() {
		return nil, &attempts.Failure{Cause: decide.Refused, Err: ErrClosed}
	}
	before := c.sharing.get()
	switch {
	case before == nil:
	case before.ended() != nil:
		// Its locks are lost; that others may have them at once needs the mark.
		c.detach(func() { _ = before.close(ctx) })
	case before.lease.Remaining() <= 0: // held on to through an outage
		return nil, &attempts.Failure{Cause: decide.Unreachable, Err: errSessionOut}
	default:
		return before, nil
	}
	return c.beginSession(ctx)
}

func (sh *sharing) get() *session {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.current
}

// beginSession creates a session's row. One whose creation had no answer is
// never used: the next attempt has another id.
func (c *Client) beginSession(ctx context.Context) (*session, error) {
	owner := protocol.NewOwner(c.cfg.Owner)
	id := protocol.ClientID(owner)
	key, proto := Key(c.sharing.proto.SessionKey(id)), c.sharing.proto.Session()
	var tried attempts.Sequence[attempt]
	r := tried.Try(context.WithoutCancel(ctx), c.requests, attempts.Operation[attempt]{
		Key: protocol.Key(key),
		Next: func() (attempt, *protocol.Write) {
			a := c.newAttempt(c.timing.Lease)
			return a, proto.Grant(protocol.Grant{Key: protocol.Key(key), Owner: owner, Version: a.version, Lease: a.lease, Now: time.Now()})
		},
		Within: min(attempts.Limit, c.timing.Trust()),
	})
	failure := r.Failure()
	switch {
	case r.Outcome == attempts.Unanswered, r.Outcome == attempts.Rejected: // a network that repeats itself is refused by its own work
		failure = &attempts.Failure{Cause: decide.Unreachable, Err: r.Err}
	case r.Outcome != attempts.Applied:
		return nil, failure
	case c.isClosing(): // which may have stopped waiting for it
		failure = &attempts.Failure{Cause: decide.Refused, Err: ErrClosed}
	default:
		record, err := proto.Decode(r.Item)
		if err == nil {
			return c.newSession(ctx, id, key, r.Attempt, record), nil
		}
		failure = &attempts.Failure{Cause: decide.Refused, Err: c.recordError(key, r.Item, err)}
	}
	version := r.Attempt.version
	hold := protocol.Hold{Key: protocol.Key(key), Owner: owner, Grants: []string{version}, Versions: []string{version}}
	c.detach(func() { c.write(context.WithoutCancel(ctx), proto.Delete(hold)) })
	return nil, failure
}

// newSession begins to renew the row that attempt a has made, as record shows it,
// and makes it the session of the client.
func (c *Client) newSession(ctx context.Context, id string, key Key, a attempt, record protocol.Record) *session {
	s := &session{
		ownRow: c.newOwnRow(ctx, key, c.sharing.proto.Session(), recordOf(record)), id: id,
		queue: make(chan struct{}, 1), naming: make(chan struct{}, 1), marking: make(chan struct{}, 1),
		locks: map[*holding]bool{}, unsettled: map[Key]*unsettledKey{},
	}
	terms := lease.Terms{Timing: c.timing, Key: protocol.Key(key), Values: s.ctx, Turn: s.naming}
	s.lease = c.leases.New(terms, lease.Attempt{Version: a.version, Sent: a.sent, Lease: a.lease}, record, s)
	s.lease.Start()
	c.sharing.mu.Lock()
	defer c.sharing.mu.Unlock()
	c.sharing.current = s
	return s
}

// join makes h one of the session's locks. If the session has ended meanwhile
// the lock is lost already.
func (s *session) join(h *holding) {
	s.mu.Lock()
	s.locks[h] = true
	s.mu.Unlock()
	if s.lease.IsOver() {
		s.loseOne(h)
	}
}

func (s *session) leave(h *holding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.locks, h)
}

func (s *session) members() []*holding {
	s.mu.Lock()
	defer s.mu.Unlock()
	locks := make([]*holding, 0, len(s.locks))
	for h := range s.locks {
		locks = append(locks, h)
	}
	return locks
}

// turnAtMost is how long a transaction keeps those of other locks out: one that
// takes longer may conflict with them, which is repeated, and hangs alone.
const turnAtMost = 500 * time.Millisecond

// turn waits until no other transaction of this client names the session's row,
// and keeps others out until leave is called. All but one wait in the queue, so
// that a renewal of the row has no more than two before it.
func (s *session) turn(ctx context.Context) (leave func()) {
	for _, place := range []chan struct{}{s.queue, s.naming} {
		select {
		case place <- struct{}{}:
			if place == s.queue {
				defer func() { <-s.queue }()
			}
		case <-s.lease.Over():
			return func() {}
		case <-ctx.Done():
			return func() {}
		}
	}
	pass := sync.OnceFunc(func() { <-s.naming })
	late := time.AfterFunc(turnAtMost, pass)
	return func() {
		late.Stop()
		pass()
	}
}

// Lost ends the session.
func (s *session) Lost(loss lease.Loss) { s.loseWith(s.lossBy(loss)) }

// loseWith ends the session and every lock of it, and only then has them told of:
// on a goroutine of its own, for whoever looked first asked of one lock.
func (s *session) loseWith(cause *LostError) {
	if !s.end(cause) {
		return
	}
	var losses []loss
	for _, h := range s.members() {
		if lost := s.lossOf(h); h.end(lost) {
			losses = append(losses, newLoss(h, lost))
		}
	}
	s.c.detach(func() { tellOf(losses) })
}

// end ends the trust for good, once, and reports whether this call did. The locks
// end when they are looked at, if they have not before.
func (s *session) end(cause error) bool {
	if !s.lease.End(cause) {
		return false
	}
	s.c.failing.forget(&s.ownRow)
	return true
}

// loseOne ends a lock of a session that has ended.
func (s *session) loseOne(h *holding) { h.loseWith(s.lossOf(h)) }

// lossOf says how a lock is lost whose session has ended.
func (s *session) lossOf(h *holding) *LostError {
	cause := s.ended()
	reason, err := LostBroken, cause
	if lost, ok := cause.(*LostError); ok { // set by loseWith, never wrapped
		reason, err = lost.Reason, lost.Err
	}
	return h.lostError(reason, nil, err)
}

// Extended makes the locks' warnings ready again: the session is trusted longer.
func (s *session) Extended() {
	for _, h := range s.members() {
		h.lease.Rearm()
	}
}
