package hold

import (
	"context"
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

// lockLease is the lease in the record of a lock under a session. While it is renewed every
// touchEvery, libraries without sessions do not take the key over. It is long, so that renewals
// cost little. (A lease that never expires would overflow in the Java client.)
const (
	lockLease  = time.Hour
	touchEvery = lockLease / 3
)

// UnderSession returns the timing for the record of a lock under a session. It takes only the margin
// from the timing that the lock would have without a session.
func UnderSession(of lease.Timing) lease.Timing {
	return lease.Timing{Lease: lockLease, Margin: of.Margin, Every: touchEvery}
}

// session is a shared lease: one row that this client renews for all locks under the session. A
// lock is trusted while the session is trusted, unless its own record has shown that its grant
// ended. The id of a session is never used again.
type session struct {
	row
	queue  ctxmutex.Mutex // locked by the transaction that will check the row next
	naming ctxmutex.Mutex // locked by a transaction that checks the row, or by a write of the row

	marking ctxmutex.Mutex                    // locked while a request marks the row dead; guards the next two fields
	marks   attempts.Sequence[releaseAttempt] // attempts to mark the session's row dead
	dead    bool                              // the session's row is marked dead, is gone, or belongs to another session

	mu        sync.Mutex      // guards the fields below; never held across I/O
	heard     map[string]bool // the break notices in the row, by id; true if the lock of the notice needs no further check
	heardAt   decide.Instant  // when the last break notice arrived; zero before the first
	unchecked []*Lock         // locks to check after the next renewal, because a check that no notice names had no answer
	inDoubt   map[protocol.Key]*keyInDoubt
}

// Names returns the session's id, and the owner that its locks have in their records.
func (s *session) Names() (id, owner string) { return protocol.ClientID(s.owner), s.owner }

// Session returns the session for new locks. If this client has no session, or its session has
// ended, Session begins a new one. It returns nil if each lock has a lease of its own.
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
		// The old session's locks are lost. Other clients can take their keys over at once
		// only if the old session is marked dead.
		c.Detach(func() { _ = before.close(ctx) })
	}
	return c.beginSession(ctx)
}

// beginSession creates a session's row. If the request has no answer, no lock ever uses this
// session's id: the next call creates a row with another id.
func (c *Holds) beginSession(ctx context.Context) (acquire.Session, error) {
	owner, proto := protocol.NewOwner(c.Name), c.Native.Session()
	key, a := c.Native.SessionKey(protocol.ClientID(owner)), c.newAttempt(c.timing.Lease)
	grant := proto.Grant(protocol.Grant{Key: key, Owner: owner, Version: a.Version, Lease: a.Lease, Now: c.Wall()})
	r := c.Requests.Write(context.WithoutCancel(ctx), grant, min(attempts.Limit, c.timing.Trust()))
	var failure *attempts.Failure
	switch record, err := c.DecodeBy(proto, key, r.Item); {
	// A failed condition means that the network has delivered the request twice. DynamoDB has
	// applied the first copy, and rejected the second.
	case r.Effect == decide.Unknown, r.Cause == decide.ConditionFailed:
		failure = &attempts.Failure{Cause: decide.Unreachable, Err: r.Err}
	case r.Effect != decide.Applied:
		return nil, &attempts.Failure{Cause: r.Cause, Err: r.Err}
	case c.IsClosing(): // Close may already have ended, without this session
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

// sessionBegun makes a session from the row that attempt a has created. It starts the
// session's renewals, and makes it the client's current session.
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

// join is called once the client holds h under the session. If the session has ended meanwhile, h
// is lost. If a break notice has arrived since the grant, join checks the record of h: hear ignores
// notices of locks that are not held yet.
func (s *session) join(h *Lock) {
	s.mu.Lock()
	if s.heardAt != (decide.Instant{}) && s.heardAt.Mono >= h.attempt.Sent.Mono {
		s.check(map[string]*Lock{h.grant: h}) // hear handles notices that arrive later
	}
	s.mu.Unlock()
	if s.lease.IsOver() {
		h.lease.Look() // ends the lock, because its parent lease has ended
	}
}

// turnAtMost is the longest time for which one transaction delays the transactions of other locks.
// After that time the next transaction is sent, even if the first one still hangs. If the two
// conflict, DynamoDB rejects the next transaction, and this client retries it.
const turnAtMost = 500 * time.Millisecond

// lockTransactions waits until no other transaction of this client checks the session's row. It
// then blocks other transactions until leave is called, but at most for turnAtMost. With a nil
// session, it returns at once.
func (s *session) lockTransactions(ctx context.Context) (leave func()) {
	if s == nil {
		return func() {}
	}
	// Only the transaction that holds s.queue waits for s.naming. A renewal of the row waits only
	// for s.naming. So at most two transactions delay it: the one in flight, and the one that
	// waits.
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

// Lost is called when the session's lease was lost. It ends the session.
func (s *session) Lost(why lease.Loss) {
	lost := s.lossOf(why)
	if why.Reason == lease.Gone {
		s.loseAs(lost)
		return
	}
	s.loseWith(lost)
}

// loseAs ends the session and all its locks, because the row no longer shows the session. The error
// "seen" is the loss according to the row. The result is the reason of the loss, or of an earlier
// loss, such as an expiry.
func (s *session) loseAs(seen error) core.Reason {
	why, before := core.LossOf(s.lease.Ended())
	if !before {
		why, _ = core.LossOf(seen)
		s.loseWith(seen)
	}
	return why.Reason
}

// loseWith ends the session and all its locks, and then reports the losses on a separate goroutine.
// So its caller, such as a call of Err for one lock, does not wait for OnEvent.
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

// end ends the trust in the session permanently, with cause as its error. It returns false if an
// earlier call had ended the trust. Each lock that is still held under the session ends when it is
// next used.
func (s *session) end(cause error) bool {
	if !s.lease.End(cause) {
		return false
	}
	s.c.failing.forget(&s.row)
	return true
}

// Extended is called after the session was renewed. It handles break notices in the reply, and sets
// the expiry warnings of the locks again, because the session is trusted for longer.
func (s *session) Extended() {
	s.hear()
	for _, h := range s.Locks() {
		h.lease.Rearm()
	}
}
