package leasehold

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
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
	c     *Client
	id    string
	owner string
	row   *holding      // of the session's row
	queue chan struct{} // one place: who is next to name the row in a transaction

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
	case before.row.ended() != nil:
		// Its locks are lost; that others may have them at once needs the mark.
		c.detach(func() { _ = before.row.release(ctx, ending{policy: keepRecord}) })
	case before.row.lease.Remaining() <= 0: // held on to through an outage
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
	s := &session{c: c, id: protocol.ClientID(owner), owner: owner, queue: make(chan struct{}, 1), locks: map[*holding]bool{}, unsettled: map[Key]*unsettledKey{}}
	proto := c.sharing.proto.Session()
	want := &request{key: Key(c.sharing.proto.SessionKey(s.id)), timing: c.timing, policy: keepRecord, heads: s}
	var tried attempts.Sequence[attempt]
	r := tried.Try(context.WithoutCancel(ctx), c.requests, attempts.Operation[attempt]{
		Key: protocol.Key(want.key),
		Next: func() (attempt, *protocol.Write) {
			a := c.newAttempt(want.timing.Lease)
			a.owner = owner
			return a, proto.Grant(c.grantOf(want, a))
		},
		Within: want.grantLimit(),
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
			s.row = c.newHolding(ctx, want, r.Attempt, recordOf(record))
			c.sharing.mu.Lock()
			c.sharing.current = s
			c.sharing.mu.Unlock()
			return s, nil
		}
		failure = &attempts.Failure{Cause: decide.Refused, Err: c.recordError(want.key, r.Item, err)}
	}
	version := r.Attempt.version
	hold := protocol.Hold{Key: protocol.Key(want.key), Owner: owner, Grants: []string{version}, Versions: []string{version}}
	c.detach(func() { c.write(context.WithoutCancel(ctx), proto.Delete(hold)) })
	return nil, failure
}

// join makes h one of the session's locks. If the session has ended meanwhile
// the lock is lost already.
func (s *session) join(h *holding) {
	s.mu.Lock()
	s.locks[h] = true
	s.mu.Unlock()
	if s.row.lease.IsOver() {
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
	for _, place := range []chan struct{}{s.queue, s.row.committing} {
		select {
		case place <- struct{}{}:
			if place == s.queue {
				defer func() { <-s.queue }()
			}
		case <-s.row.lease.Over():
			return func() {}
		case <-ctx.Done():
			return func() {}
		}
	}
	pass := sync.OnceFunc(func() { <-s.row.committing })
	late := time.AfterFunc(turnAtMost, pass)
	return func() {
		late.Stop()
		pass()
	}
}

// lose ends every lock of a session that has ended, and only then has it told:
// on a goroutine of its own, for whoever looked first asked of one lock.
func (s *session) lose() {
	var losses []loss
	for _, h := range s.members() {
		if lost := s.lossOf(h); h.end(lost) {
			losses = append(losses, newLoss(h, lost))
		}
	}
	s.c.detach(func() { tellOf(losses) })
}

// loseOne ends a lock of a session that has ended.
func (s *session) loseOne(h *holding) { h.loseWith(s.lossOf(h)) }

// lossOf says how a lock is lost whose session has ended.
func (s *session) lossOf(h *holding) *LostError {
	cause := s.row.ended()
	reason, err := LostBroken, cause
	if lost, ok := cause.(*LostError); ok { // set by the row's holding, never wrapped
		reason, err = lost.Reason, lost.Err
	}
	return h.lostError(reason, nil, err)
}

// renewed makes the locks' warnings ready again: the session is trusted longer.
func (s *session) renewed() {
	for _, h := range s.members() {
		h.lease.Rearm()
	}
}

// closeSession frees what is held under the session in one write, if no function
// in Do is left that one of the locks belongs to; the others' errors say so.
func (c *Client) closeSession(limit context.Context, busy bool) error {
	if c.sharing == nil {
		return nil
	}
	select {
	case c.sharing.place <- struct{}{}: // one that is being begun is waited for; none is begun after it
		defer func() { <-c.sharing.place }()
	case <-limit.Done():
	}
	s := c.sharing.get()
	if s == nil {
		return nil
	}
	if busy {
		// Freed one by one, all but those in use: they have their lease still.
		s.row.end(ErrClosed)
		return nil
	}
	op := newReleasing(limit) // of all of them
	var freed []*holding
	for _, h := range s.members() {
		if h.want.policy == keepRecord && h.endWith(ErrReleased, op) {
			freed = append(freed, h)
		}
	}
	_, leave := takeTurns(limit, freed)
	defer leave()
	started := c.now()
	err := s.row.release(limit, ending{policy: keepRecord})
	if len(freed) == 0 && errors.Is(err, ErrLost) {
		return nil // it had been lost before, and with it whatever was held
	}
	op.end(err)
	for _, h := range freed {
		c.emit(h.ctx, Event{Kind: EventReleased, Key: h.key, Token: h.token, Took: c.now().Mono - started.Mono,
			Held: h.heldUntil(started), Err: err})
	}
	if err != nil {
		c.log.LogAttrs(limit, slog.LevelWarn, "leasehold: the session could not be ended: its lease frees its locks", slog.Any("err", err))
	}
	return err
}
