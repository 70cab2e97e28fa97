package hold

import (
	"context"
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

// lockLease is the lease in the record of a lock under a session. It is meant for libraries
// that do not support sessions. touchEvery is how often that record is renewed. The lease
// is long, so that renewals cost little. It is renewed before it expires, so that such a
// library waits and does not take the key. (A lease that never expires would overflow in
// the Java client.) This client does not use that lease to decide about trust: renewing the
// record does not extend trust, and failing to renew it does not end trust. A renewal only
// finds out that the record was broken or deleted.
const (
	lockLease  = time.Hour
	touchEvery = lockLease / 3
)

// UnderSession returns the timing of a record whose session is renewed instead. The margin stays as it is.
func UnderSession(of lease.Timing) lease.Timing {
	return lease.Timing{Lease: lockLease, Margin: of.Margin, Every: touchEvery}
}

// session is a shared lease: one row that this client renews for all locks that it acquires
// under the session. Such a lock is trusted while both its record and the session are
// trusted. The id of a session is never used again.
type session struct {
	row
	queue  ctxmutex.Mutex // held by the transaction that will name the row next
	naming ctxmutex.Mutex // held by a transaction that names the row, or by a write of the row

	marking ctxmutex.Mutex                    // held while the row is being marked dead; guards the next two fields
	marks   attempts.Sequence[releaseAttempt] // attempts to mark the row dead
	dead    bool                              // the row is marked dead

	mu      sync.Mutex      // guards the fields below; never held across I/O
	heard   map[string]bool // break notices in the row, by id; true once the lock that the notice names was checked
	heardAt decide.Instant  // when the last notice arrived; zero before the first
	inDoubt map[protocol.Key]*keyInDoubt
}

// Names returns the session's id and the owner of its locks.
func (s *session) Names() (id, owner string) { return protocol.ClientID(s.owner), s.owner }

// Session returns the session for new locks. If no session is trusted, it begins one. It
// returns nil if each lock has a lease of its own.
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
	if before := c.session.Load(); before != nil {
		if before.lease.Ended() == nil {
			return before, nil
		}
		// The locks of the old session are lost. Other clients can take them over at once
		// only if the old session is marked dead.
		c.Detach(func() { _ = before.close(ctx) })
	}
	return c.beginSession(ctx)
}

// beginSession creates a session's row. If the request has no answer, the session's id is
// never used: the next attempt has another id.
func (c *Holds) beginSession(ctx context.Context) (acquire.Session, error) {
	owner, proto := protocol.NewOwner(c.Name), c.Native.Session()
	key, a := c.Native.SessionKey(protocol.ClientID(owner)), c.newAttempt(c.timing.Lease)
	grant := proto.Grant(protocol.Grant{Key: key, Owner: owner, Version: a.Version, Lease: a.Lease, Now: c.Wall()})
	r := c.Requests.Write(context.WithoutCancel(ctx), grant, min(attempts.Limit, c.timing.Trust()))
	var failure *attempts.Failure
	switch record, err := c.DecodeBy(proto, key, r.Item); {
	case r.Effect == decide.Unknown, r.Cause == decide.ConditionFailed: // a rejection is the reply to a second copy of the request, as the first copy has created the row
		failure = &attempts.Failure{Cause: decide.Unreachable, Err: r.Err}
	case r.Effect != decide.Applied:
		return nil, &attempts.Failure{Cause: r.Cause, Err: r.Err}
	case c.IsClosing(): // Close may have stopped waiting for this call
		failure = &attempts.Failure{Cause: decide.Refused, Err: core.ErrClosed}
	case err != nil:
		failure = &attempts.Failure{Cause: decide.Refused, Err: err}
	default:
		return c.sessionBegun(ctx, key, a, record), nil
	}
	hold := protocol.Hold{Key: key, Owner: owner, Grants: []string{a.Version}, Versions: []string{a.Version}}
	c.Detach(func() { c.Requests.Write(context.WithoutCancel(ctx), proto.Delete(hold), attempts.Limit) })
	return nil, failure
}

// sessionBegun makes the session of the row that attempt a has created, begins to renew it,
// and makes it the session of the client.
func (c *Holds) sessionBegun(ctx context.Context, key protocol.Key, a releaseAttempt, record protocol.Record) *session {
	s := &session{
		row:   c.newRow(ctx, key, c.Native.Session(), record),
		queue: ctxmutex.New(), naming: ctxmutex.New(), marking: ctxmutex.New(),
		inDoubt: map[protocol.Key]*keyInDoubt{},
	}
	terms := lease.Terms{Timing: c.timing, Key: key, Values: s.ctx, Writes: s.naming}
	s.lease = c.leases.New(terms, a.Attempt, record, s)
	s.lease.Start()
	c.session.Store(s)
	return s
}

// join is called once h is held under the session. If the session has ended in the
// meantime, the lock is lost. A break notice for h may have arrived between the grant and
// this call, when hear could not find the lock. In that case join checks the lock.
func (s *session) join(h *Lock) {
	s.mu.Lock()
	if s.heardAt != (decide.Instant{}) && s.heardAt.Mono >= h.granted.Mono {
		s.check(map[string]*Lock{"": h}) // hear handles later notices
	}
	s.mu.Unlock()
	if s.lease.IsOver() {
		h.lease.Look() // ends the lock
	}
}

// Locks returns the locks of the session.
func (s *session) Locks() []*Lock {
	return slices.DeleteFunc(s.c.Locks(), func(h *Lock) bool { return h.session != s })
}

// turnAtMost is the longest time for which a transaction delays the transactions of other
// locks, so that a transaction that hangs does not block them. After that time the next
// transaction is sent. It may conflict with the first, and conflicts are retried.
const turnAtMost = 500 * time.Millisecond

// lockTransactions waits until no other transaction of this client names the session's row,
// and blocks others until leave is called. All but one of the waiting transactions wait in
// the queue. A renewal of the row does not wait in the queue, so at most two transactions
// come before it. A nil session blocks nothing.
func (s *session) lockTransactions(ctx context.Context) (leave func()) {
	if s == nil {
		return func() {}
	}
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

// Lost ends the session because its lease was lost.
func (s *session) Lost(why lease.Loss) {
	lost := s.lossOf(why)
	if why.Reason == lease.Gone {
		s.loseAs(lost)
		return
	}
	s.loseWith(lost)
}

// loseAs ends the session and all its locks because the row no longer shows the session. It
// returns the reason. If the session's lease had expired before, the reason is the expiry:
// another client has marked the session dead to take a lock over, and no operator has
// broken it.
func (s *session) loseAs(seen error) core.Reason {
	why, before := core.LossOf(s.lease.Ended())
	if !before {
		why, _ = core.LossOf(seen)
		s.loseWith(seen)
	}
	return why.Reason
}

// loseWith ends the session and all its locks, and reports the locks once all have ended.
// It reports them on a separate goroutine: its caller may have asked about one lock only,
// and must not wait for the listeners.
func (s *session) loseWith(cause error) {
	if !s.end(cause) {
		return
	}
	why, _ := core.LossOf(cause)
	var lost []*Lock
	for _, h := range s.Locks() {
		if h.end(h.lostError(why.Reason, nil, why.Err)) {
			lost = append(lost, h)
		}
	}
	s.c.Detach(func() { reportLosses(lost) })
}

// end ends the trust permanently. It reports whether this call ended it: only the first
// call does. Locks that have not ended yet end when they are next used.
func (s *session) end(cause error) bool {
	if !s.lease.End(cause) {
		return false
	}
	s.c.failing.forget(&s.row)
	return true
}

// Extended rearms the warnings of the locks, as the session is trusted for longer. It also
// handles break notices in the reply.
func (s *session) Extended() {
	s.hear()
	for _, h := range s.Locks() {
		h.lease.Rearm()
	}
}
