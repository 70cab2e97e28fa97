package liveness

import (
	"context"
	"maps"
	"math"
	"sync/atomic"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/ctxmutex"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Session is another client's session, as this client has observed it. All goroutines that
// wait for a lock under the session share one Session. So one reading of the session's row
// serves all of them.
type Session struct {
	o    *Observer
	key  protocol.Key
	used time.Duration  // monotonic time of the last call of SessionOf for the session; guarded by o.mu
	busy ctxmutex.Mutex // locked to read or write the row; guards the fields below

	readAt time.Duration   // monotonic time when the row was last read; zero if it was never read, or could not be decoded then
	dead   bool            // the session is dead, which never changes again
	record protocol.Record // the row as it was last read
	deadAt time.Duration   // monotonic time when the session may be marked dead, unless it is renewed
}

// An Observer that remembers fewSessions or more may drop the sessions for which SessionOf was not
// called within keepSession (or 2*PollMax, if longer). Waiters, and observers of an election, call
// SessionOf more often. A dropped session is observed anew.
const (
	fewSessions = 100
	keepSession = 15 * time.Minute
)

// SessionOf returns the session that the holder renews instead of the record r. It returns nil if
// r contains no session id, or if the layout has no sessions.
func (o *Observer) SessionOf(r protocol.Record) *Session {
	if o.Native == nil || r.Session == "" {
		return nil
	}
	now := o.Now().Mono
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.sessions[r.Session]
	if s == nil {
		o.dropUnused(durations.Less(now, max(keepSession, durations.Times(o.PollMax, 2))))
		s = &Session{o: o, key: o.Native.SessionKey(r.Session), busy: ctxmutex.New()}
		o.sessions[r.Session] = s
	}
	s.used = now
	return s
}

// dropUnused drops the sessions that no caller has asked for since the monotonic time "before". To
// save time, it does nothing until the number of sessions is twice the number that remained after
// its last drop. The caller must hold o.mu.
func (o *Observer) dropUnused(before time.Duration) {
	if len(o.sessions) < max(o.many, fewSessions) {
		return
	}
	maps.DeleteFunc(o.sessions, func(_ string, s *Session) bool { return s.used < before })
	o.many = 2 * len(o.sessions)
}

// enter locks s.busy, so that no other goroutine reads or writes the row. If ctx is done first,
// enter returns an error.
func (s *Session) enter(ctx context.Context) error {
	if s.busy.Lock(ctx) {
		return nil
	}
	return &attempts.Failure{Cause: decide.Unreachable, Err: attempts.Cause(ctx)}
}

// Look returns the session's row, and the monotonic time when the session may be marked dead. For a
// dead session, that time is math.MinInt64. Look reads the row, unless the session is dead or the
// last read is newer than the duration "fresh". It counts its request in *requests.
func (s *Session) Look(ctx context.Context, fresh time.Duration, requests *atomic.Int64) (row protocol.Record, deadAt time.Duration, err error) {
	if err := s.enter(ctx); err != nil {
		return protocol.Record{}, 0, err
	}
	defer s.busy.Unlock()
	if s.dead || s.readAt != 0 && durations.Less(s.o.Now().Mono, s.readAt) < fresh {
		return s.record, s.deadAt, nil
	}
	requests.Add(1)
	item, err := s.o.Requests.Read(ctx, s.key)
	if err != nil {
		return protocol.Record{}, 0, err
	}
	err = s.observe(item)
	return s.record, s.deadAt, err
}

// observe decodes the session's row, which was just read as item, and keeps the result. The caller
// must hold s.busy.
func (s *Session) observe(item protocol.Item) error {
	wall, now := s.o.Wall(), s.o.Now()
	before, watched := s.record.Version, s.readAt != 0
	row, err := SessionRow(s.o.Native, item, s.o.Lease)
	if err != nil {
		s.readAt = 0 // the next caller then reads the row again, and gets the error, too
		return s.o.Errors.Unreadable(s.key, item, err)
	}
	s.readAt = now.Mono
	s.record = row
	s.record.Key = s.key
	if s.record.Released {
		s.setDead()
		return nil
	}
	v := s.o.Records.Note(s.key, s.record, now)
	if watched && s.record.Version == before {
		// The session was not renewed, so keep deadAt. A new deadAt could be too late: the cache
		// Observer.Records may have forgotten when this version was first read.
		return nil
	}
	s.deadAt = s.o.DeadAt(s.record, v, now, wall)
	return nil
}

// setDead records that the session is dead for good. The caller must hold s.busy.
func (s *Session) setDead() {
	s.dead, s.deadAt = true, math.MinInt64
	s.o.Records.Forget(s.key)
}

// MarkDead marks the session's row as dead if the time "deadAt", a result of Look, has passed. It
// reports whether the session is dead. It counts its request in *requests.
func (s *Session) MarkDead(ctx context.Context, requests *atomic.Int64) (bool, error) {
	if err := s.enter(ctx); err != nil {
		return false, err
	}
	defer s.busy.Unlock()
	if s.dead {
		return true, nil
	}
	if s.readAt == 0 || s.o.Now().Mono < s.deadAt {
		return false, nil // another goroutine has meanwhile read a newer version, or a row that cannot be decoded
	}
	if protocol.IsNoRow(s.record.Version) {
		s.setDead()
		return true, nil
	}
	requests.Add(1)
	var tried attempts.Sequence[attempts.Version]
	r := tried.Try(context.WithoutCancel(ctx), s.o.Requests, attempts.Operation[attempts.Version]{
		Key: s.key,
		Next: func() (attempts.Version, *protocol.Write) {
			version := protocol.NewVersion()
			return attempts.Version(version), s.o.Native.Session().Break(s.record, protocol.Break{Version: version, Expires: s.o.DeadExpires()})
		},
	})
	switch r.Outcome {
	case attempts.Applied:
		s.setDead()
		return true, nil
	case attempts.Rejected:
		err := s.observe(r.Item)
		return s.dead, err
	}
	return false, r.Failure()
}
