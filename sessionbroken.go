package leasehold

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// A break of a lock under a session changes a record that is rarely renewed. So whoever
// breaks it tells the session's row which grant it was, and the reply to the session's
// next renewal tells the holder to look at that record. Each word has an id of its own:
//
//	absent ── tell ──► told ── a reply to a renewal ──► heard ── looked at ──► removed by
//	                    ▲                                 ▲  │                 the next renewal
//	                    └── a late copy: nothing comes    └──┘ no answer: at
//	                        of it                              the next reply
//
// What is told proves nothing: the record is looked at, by its own renewal. That is the
// one that fails once the grant has ended, and it changes nothing if the grant stands.
// So a look is begun only after the word was heard, and settles that word alone: a second
// break of the same grant, the first of which never landed, is another word.

const (
	looksAtOnce = 16  // records that are looked at at the same time
	mostHeard   = 100 // words that one renewal removes: an expression has 4 KB at most
)

// hear looks at the locks whose grants the session's row tells to be broken, as the last
// reply shows it.
func (s *session) hear() {
	told := s.lease.Record().BrokenGrants
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(told) == 0 {
		s.heard = nil
		return
	}
	heard := make(map[string]bool, len(told))
	found := map[string]*holding{}
	for word, grant := range told {
		if looked, before := s.heard[word]; before {
			heard[word] = looked
			continue
		}
		s.heardAt = s.c.now()
		h := s.memberOf(grant)
		heard[word] = h == nil
		if h != nil {
			found[word] = h
		}
	}
	s.heard = heard
	s.lookAt(found)
}

// memberOf returns the session's lock of that grant; nil: it has ended, or is not known
// yet. s.mu is held.
func (s *session) memberOf(grant string) *holding {
	for h := range s.locks {
		if h.grant == grant {
			return h
		}
	}
	return nil
}

// lookAt renews the records of locks, which ends those that were broken. They are by the
// words that tell of them.
func (s *session) lookAt(locks map[string]*holding) {
	if len(locks) == 0 {
		return
	}
	s.c.detach(func() {
		places := make(chan struct{}, looksAtOnce)
		for word, h := range locks {
			places <- struct{}{}
			s.c.detach(func() {
				defer func() { <-places }()
				_, err := h.lease.Renew(h.ctx, lease.Changes{})
				s.looked(word, err == nil || h.lease.IsOver())
			})
		}
	})
}

// looked records that the lock has been looked at that a word is about. Without an answer
// the next reply to a renewal of the session is reason to look again.
func (s *session) looked(word string, answered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, told := s.heard[word]; !told {
		return
	}
	if answered {
		s.heard[word] = true
	} else {
		delete(s.heard, word)
	}
}

// Renewal spells attempt a of a renewal, which removes what has been heard and looked at.
func (s *session) Renewal(a lease.Attempt, versions []string, ch protocol.Changes) *protocol.Write {
	r := protocol.Renewal{Version: a.Version, Lease: a.Lease, Now: s.c.wall(), Changes: ch}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, word := range slices.Sorted(maps.Keys(s.heard)) {
		if s.heard[word] && len(r.Heard) < mostHeard {
			r.Heard = append(r.Heard, word)
		}
	}
	return s.proto.Renew(s.named(versions), r)
}

// tellHolder tells the session of r, if it is under one, that the grant in r was broken,
// or may have been. It tries until limit ends, and once at least.
func (c *Client) tellHolder(limit context.Context, r Record) error {
	proto, ok := c.proto.(protocol.Sharing)
	if !ok || r.Session == "" {
		return nil
	}
	key, word, ctx := proto.SessionKey(r.Session), protocol.NewVersion(), context.WithoutCancel(limit)
	throttled := c.throttled(ctx, r.Key, r.Token)
	err := c.requests.Repeat(limit, func() error {
		reply := c.requests.Write(ctx, proto.TellBroken(r.Session, word, r.Grant), attempts.Limit)
		switch {
		case reply.Effect == decide.Applied:
			return nil
		case reply.Cause != decide.ConditionFailed:
			return &attempts.Failure{Cause: reply.Cause, Outage: reply.Outage, Err: reply.Err}
		}
		row := reply.Old
		if row == nil { // there is none, or the engine does not return it
			var err error
			if row, err = c.requests.Read(ctx, key); err != nil {
				return err
			}
		}
		return c.whyUntold(proto, key, row)
	}, func(f *attempts.Failure) error {
		if f.Cause == decide.Busy {
			throttled(f.Err)
		}
		return nil
	})
	if err == nil {
		return nil
	}
	if f := attempts.FailureOf(err); f != nil {
		err = f.Err
	}
	return c.untold(r.Key, errors.Join(context.Cause(limit), err))
}

// whyUntold says why the row of a session takes no word of a break. nil: its locks have
// ended with it, and there is nobody to tell.
func (c *Client) whyUntold(proto protocol.Sharing, key protocol.Key, row protocol.Item) error {
	if row == nil {
		return nil
	}
	shown, err := proto.Session().Decode(row)
	switch {
	case err != nil:
		return c.recordError(Key(key), row, err)
	case shown.Released:
		return nil
	}
	return errors.New("its client is of a version that cannot be told")
}

// untold says that a grant is broken, and what comes of it that its holder is not told.
func (c *Client) untold(key Key, err error) error {
	return opError("break", c.cfg.Table, key, fmt.Errorf(
		"%w: the key is free, and the holder, if it lives, learns of it within twenty minutes; its commits fail at once: %w", ErrHolderUntold, err))
}
