package hold

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// closeSession frees all locks of the session with one write. It sends nothing if busy is true: a
// function passed to Do still runs under one of the locks.
func (c *Holds) closeSession(limit context.Context, busy bool) error {
	if c.beginning.Lock(limit) { // while this mutex is locked, no call begins a session
		defer c.beginning.Unlock()
	}
	s := c.session.Load()
	if s == nil {
		return nil
	}
	if busy {
		// The locks under which functions still run are not freed: they become free when the
		// session's lease expires. All other locks have been freed one by one.
		s.end(core.ErrClosed)
		return nil
	}
	var freed []*release
	for _, h := range s.Locks() {
		r := h.newRelease()
		if !r.terms.Delete && r.beginUnseen(limit, core.ErrClosed) {
			freed = append(freed, r)
		}
	}
	_, leave := takeTurns(limit, holdsOf(freed))
	defer leave()
	err := s.close(limit)
	if len(freed) == 0 && errors.Is(err, core.ErrLost) {
		return nil // the session and all its locks were lost before Close
	}
	for _, r := range freed {
		c.repeats(r.h, false)
		r.end(err)
	}
	for _, r := range freed {
		h := r.h
		c.Report(h.ctx, core.Event{Kind: core.Released, Key: h.key, Token: h.token, Took: c.Now().Mono - r.started.Mono,
			Held: h.held(), Err: err})
	}
	return err
}

// close ends the session and marks its row dead, which frees its locks for all clients. The
// call may take as long as ReleaseGrace even if ctx ends at once. Callers may repeat it
// until the row is marked.
func (s *session) close(ctx context.Context) error {
	limit, cancel := s.c.AtLeastGrace(ctx, ctx)
	defer cancel()
	s.lease.Look()
	s.end(core.ErrClosed)
	cause := s.lease.Cause()
	why, lost := core.LossOf(cause)
	if lost && why.SeenGone() {
		return core.Public(cause) // the row has shown that this session ended: another client has marked it dead, or the row is gone
	}
	return s.c.Outlive(limit, "release", s.key, &s.marks, func() error {
		if err := s.mark(limit, !lost); !lost {
			return err
		}
		return core.Public(cause)
	})
}

// mark waits until no transaction of this client checks the row, and then marks the row dead. The
// parameter "trusted" is false if the session was lost: mark then sends only one attempt.
func (s *session) mark(limit context.Context, trusted bool) error {
	if !s.marking.Lock(limit) { // limit was done while another call was still marking the row
		return s.c.UnknownOutcome("release", s.key, attempts.Cause(limit))
	}
	defer s.marking.Unlock()
	if s.naming.Lock(limit) {
		defer s.naming.Unlock()
	}
	if s.dead {
		return nil
	}
	err := s.tryToMark(limit, trusted)
	if s.dead = err == nil || errors.Is(err, core.ErrLost); !s.dead {
		s.c.Log.LogAttrs(s.ctx, slog.LevelWarn, "leasehold: the session could not be ended: its lease frees its locks",
			slog.String("table", s.c.Table), slog.Any("err", err))
	}
	return err
}

// tryToMark sends the attempts of mark. The caller must hold s.marking.
func (s *session) tryToMark(limit context.Context, trusted bool) error {
	until := s.c.Now().Add(s.lease.Duration()) // time when the session's lease expires, which frees the locks
	ctx := context.WithoutCancel(limit)
	held := s.lease.Versions()
	r, _ := s.send(ctx, limit, &held, &s.marks, attempts.Operation[releaseAttempt]{
		Next: func() (releaseAttempt, *protocol.Write) {
			a := s.c.newAttempt(0)
			return a, s.proto.Release(s.named(slices.Concat(held, s.marks.Versions())),
				protocol.Release{Version: a.Version, Expires: s.c.DeadExpires()})
		},
		Shows: func(item protocol.Item, sent []releaseAttempt) (releaseAttempt, bool) {
			return sent[len(sent)-1], s.isMarked(item, sent)
		},
	}, !trusted, until)
	switch r.Outcome {
	case attempts.Applied:
		return nil
	case attempts.Rejected:
		return core.Public(s.lossShown(r.Item, nil))
	}
	return s.c.notDone(limit, "release", s.key, r, len(s.marks.Versions()))
}

// isMarked reports whether an attempt of this client has marked the row dead. The item is the row,
// which no longer shows the session.
func (s *session) isMarked(item protocol.Item, sent []releaseAttempt) bool {
	r, err := s.Decode(item)
	if err != nil {
		// The row is damaged or missing. A dead row is kept for a long time, so if the row is
		// missing, an operator has deleted it. If an attempt had no reply, assume that it was
		// applied before the deletion or damage. The method close ignores the result if the session
		// was lost.
		return s.marks.Silent()
	}
	_, ours := attempts.Find(sent, r.Version)
	return ours && r.Released
}
