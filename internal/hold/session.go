package hold

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/acquire"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/ctxmutex"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// lockLease is the lease in the record of a lock under a session, for libraries that
// do not know sessions. touchEvery is how often that record is renewed. The lease is
// long, so that renewals cost little, and true, so that such a library waits and does
// not take the key. (A lease without end overflows in the Java client.) For this
// client it means nothing: a renewal of that record neither extends trust nor, if it
// fails, ends it. It only finds out about a Break, or that the record was deleted.
const (
	lockLease  = time.Hour
	touchEvery = lockLease / 3
)

// UnderSession returns the timing of a record whose session is renewed instead: of has the
// margin.
func UnderSession(of lease.Timing) lease.Timing {
	return lease.Timing{Lease: lockLease, Margin: of.Margin, Every: touchEvery}
}

// session is a shared lease: one row that this client renews for all the locks that
// it was granted under the session. Such a lock is trusted while both its record and
// the session are. An id is never used again.
type session struct {
	row
	id     string
	queue  ctxmutex.Mutex // for the next transaction that names the row
	naming ctxmutex.Mutex // for a transaction that names the row, or a write of it

	marking ctxmutex.Mutex                    // for marking the row dead; guards the next two
	marks   attempts.Sequence[releaseAttempt] // the write that marks it dead
	dead    bool                              // it is marked

	mu      sync.Mutex // guards what follows; never held across I/O
	locks   map[*Lock]struct{}
	heard   map[string]bool // words of breaks in the row; true once the lock was checked
	heardAt decide.Instant  // when the last of them arrived; zero before the first
	inDoubt map[protocol.Key]*keyInDoubt
}

// Names are the session's id and the owner of its locks.
func (s *session) Names() (id, owner string) { return s.id, s.owner }

// Session returns the session that locks are granted under, and begins one if none is
// trusted. It is nil if each lock is renewed by itself.
func (c *Holds) Session(ctx context.Context) (acquire.Session, error) {
	if !c.shared {
		return nil, nil
	}
	if !c.beginning.Lock(ctx) {
		return nil, &attempts.Failure{Cause: decide.Unreachable, Err: attempts.Cause(ctx)}
	}
	defer c.beginning.Unlock()
	if c.IsClosing() {
		return nil, &attempts.Failure{Cause: decide.Refused, Err: core.ErrClosed}
	}
	before := c.session.Load()
	switch {
	case before == nil:
	case before.lease.Ended() != nil:
		// Its locks are lost. Only once it is marked dead can others have them at once.
		c.Detach(func() { _ = before.close(ctx) })
	default:
		return before, nil
	}
	return c.beginSession(ctx)
}

// beginSession creates a session's row. If there is no answer, that id is never used:
// the next attempt has another one.
func (c *Holds) beginSession(ctx context.Context) (acquire.Session, error) {
	owner := protocol.NewOwner(c.Name)
	id := protocol.ClientID(owner)
	key, proto := c.Native.SessionKey(id), c.Native.Session()
	var tried attempts.Sequence[releaseAttempt]
	r := tried.Try(context.WithoutCancel(ctx), c.Requests, attempts.Operation[releaseAttempt]{
		Key: key,
		Next: func() (releaseAttempt, *protocol.Write) {
			a := c.newAttempt(c.timing.Lease)
			return a, proto.Grant(protocol.Grant{Key: key, Owner: owner, Version: a.Version, Lease: a.Lease, Now: c.Wall()})
		},
		Within: min(attempts.Limit, c.timing.Trust()),
	})
	failure := r.Failure()
	switch {
	case r.Outcome == attempts.Unanswered, r.Outcome == attempts.Rejected: // rejected: this was the second copy of the request
		failure = &attempts.Failure{Cause: decide.Unreachable, Err: r.Err}
	case r.Outcome != attempts.Applied:
		return nil, failure
	case c.IsClosing(): // Close may have stopped waiting for this
		failure = &attempts.Failure{Cause: decide.Refused, Err: core.ErrClosed}
	default:
		record, err := proto.Decode(r.Item)
		if err == nil {
			return c.sessionBegun(ctx, id, r.Attempt, record), nil
		}
		failure = &attempts.Failure{Cause: decide.Refused, Err: c.Errors.Unreadable(key, r.Item, err)}
	}
	version := r.Attempt.Version
	hold := protocol.Hold{Key: key, Owner: owner, Grants: []string{version}, Versions: []string{version}}
	c.Detach(func() { c.Requests.Write(context.WithoutCancel(ctx), proto.Delete(hold), attempts.Limit) })
	return nil, failure
}

// sessionBegun begins to renew the row that attempt a has made, as record shows it,
// and makes it the session of the client.
func (c *Holds) sessionBegun(ctx context.Context, id string, a releaseAttempt, record protocol.Record) *session {
	key := c.Native.SessionKey(id)
	s := &session{
		row: c.newRow(ctx, key, c.Native.Session(), record), id: id,
		queue: ctxmutex.New(), naming: ctxmutex.New(), marking: ctxmutex.New(),
		locks: map[*Lock]struct{}{}, inDoubt: map[protocol.Key]*keyInDoubt{},
	}
	terms := lease.Terms{Timing: c.timing, Key: key, Values: s.ctx, Writes: s.naming}
	s.lease = c.leases.New(terms, a.Attempt, record, s)
	s.lease.Start()
	c.session.Store(s)
	return s
}

// join makes h one of the session's locks. If the session has ended meanwhile the lock is lost
// already; if the lock has, the session forgets it. If a notice of a break arrived since the
// grant was sent, it may have been of this one, which nobody knew yet.
func (s *session) join(h *Lock) {
	s.mu.Lock()
	s.locks[h] = struct{}{}
	if s.heardAt != (decide.Instant{}) && s.heardAt.Mono >= h.granted.Mono {
		s.check(map[string]*Lock{"": h}) // notices that have not arrived yet do not count
	}
	s.mu.Unlock()
	switch {
	case s.lease.IsOver():
		h.lease.Look() // ends the lock with the session
	case h.lease.IsOver(): // the lock may have ended before it joined
		s.leave(h)
	}
}

func (s *session) leave(h *Lock) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.locks, h)
}

// Locks returns the locks that the session is renewed for.
func (s *session) Locks() []*Lock {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.locks))
}

// turnAtMost is how long a transaction keeps those of other locks waiting. One that
// takes longer may conflict with them, and conflicts are retried. So one that hangs
// holds up no other.
const turnAtMost = 500 * time.Millisecond

// lockTransactions waits until no other transaction of this client names the session's row, and
// keeps others waiting until leave is called. All but one wait in the queue,
// so that no more than two go before a renewal of the row.
func (s *session) lockTransactions(ctx context.Context) (leave func()) {
	for _, mutex := range []ctxmutex.Mutex{s.queue, s.naming} {
		select {
		case mutex <- struct{}{}:
			if mutex == s.queue {
				defer s.queue.Unlock()
			}
		case <-s.lease.Over():
			return func() {}
		case <-ctx.Done():
			return func() {}
		}
	}
	pass := sync.OnceFunc(s.naming.Unlock)
	late := time.AfterFunc(turnAtMost, pass)
	return func() {
		late.Stop()
		pass()
	}
}

// Lost ends the session.
func (s *session) Lost(why lease.Loss) {
	lost := s.lossOf(why)
	if why.Reason == lease.Gone {
		s.loseAs(lost)
		return
	}
	s.loseWith(lost)
}

// loseAs ends the session, and with it every lock of it, because its row no longer shows it. It
// returns the reason: that or, if its lease had run out before, that. For then somebody has
// marked it dead to take a lock over, and nobody has broken anything.
func (s *session) loseAs(seen error) core.Reason {
	why, before := core.LossOf(s.lease.Ended())
	if !before {
		why, _ = core.LossOf(seen)
		s.loseWith(seen)
	}
	return why.Reason
}

// loseWith ends the session and every lock of it, and reports them once all have
// ended. It reports on a goroutine of its own: its caller may have asked about one
// lock only, and does not wait for the listeners.
func (s *session) loseWith(cause error) {
	if !s.end(cause) {
		return
	}
	why, _ := core.LossOf(cause)
	var lost []*Lock
	for _, h := range s.Locks() {
		if h.end(h.lostWithSession(why)) {
			lost = append(lost, h)
		}
	}
	s.c.Detach(func() { reportLosses(lost) })
}

// end ends the trust for good, once, and reports whether this call did. Locks that have not
// ended yet end when they are next read.
func (s *session) end(cause error) bool {
	if !s.lease.End(cause) {
		return false
	}
	s.c.failing.forget(&s.row)
	return true
}

// Extended makes the locks' warnings ready again: the session is trusted for longer. The reply
// may contain notices of breaks.
func (s *session) Extended() {
	s.hear()
	for _, h := range s.Locks() {
		h.lease.Rearm()
	}
}
