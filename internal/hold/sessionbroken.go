package hold

import (
	"maps"
	"slices"

	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// A holder rarely renews the record of a lock under a session, so it would learn late of a break.
// The client that breaks the lock therefore puts a notice with the grant's id into the session's
// row. The reply to the session's next renewal shows the notice, and the holder checks the record.
// Each notice has an id of its own:
//
//	absent ── break ──► in the row ── a reply to a renewal ──► heard ── checked ──► removed by
//	                      ▲                                      ▲  │               the next renewal
//	                      └── a late copy has no effect          └──┘ no answer: checked again
//	                                                                  at the next reply
//
// A late copy is a second copy of the request that adds the notice, which the network delivers
// late. It does not harm a later lock of the key, because a grant id is never used again.
//
// A notice does not prove a break, because the write of the break may have failed. So the holder
// renews the record to check it. If DynamoDB rejects the renewal because the grant has ended, the
// lock is lost. A second break of the grant leaves a second notice, and causes a second check.

const (
	checksAtOnce = 16  // largest number of records that are checked at the same time
	mostHeard    = 100 // largest number of notice ids that one renewal removes: an update expression has at most 4 KB
)

// hear reads the break notices in the last reply with the session's row, and checks the
// locks that they name.
func (s *session) hear() {
	told := s.lease.Record().BrokenGrants
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(told)+len(s.unchecked) == 0 {
		s.heard = nil
		return
	}
	held := s.Locks()
	heard := make(map[string]bool, len(told))
	found := map[string]*Lock{}
	for _, h := range s.unchecked {
		found[h.grant] = h
	}
	s.unchecked = nil
	for word, grant := range told {
		if checked, before := s.heard[word]; before {
			heard[word] = checked
			continue
		}
		s.heardAt = s.c.Now()
		heard[word] = true // stays true if the notice's lock is not found: the lock has ended, or join will check it
		if i := slices.IndexFunc(held, func(h *Lock) bool { return h.grant == grant }); i >= 0 {
			heard[word], found[word] = false, held[i]
		}
	}
	s.heard = heard
	s.check(found)
}

// check renews the record of each lock in locks. A rejected renewal shows that the lock was
// broken, and ends it. The keys of the map are ids of break notices, or ids of grants that are
// checked without a notice.
func (s *session) check(locks map[string]*Lock) {
	if len(locks) == 0 {
		return
	}
	s.c.Detach(func() {
		places := make(chan struct{}, checksAtOnce)
		for word, h := range locks {
			places <- struct{}{}
			s.c.Detach(func() {
				defer func() { <-places }()
				_, err := h.lease.Renew(h.ctx, lease.Changes{})
				s.checked(word, h, err == nil || h.lease.IsOver())
			})
		}
	})
}

// checked is called after a check of h. The parameter "id" is the id of a notice that names h, or
// of the grant of h. A check without an answer is repeated after the session's next renewal. If no
// notice names h, s.unchecked contains h until then.
func (s *session) checked(id string, h *Lock, answered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch _, told := s.heard[id]; {
	case told && answered:
		s.heard[id] = true
	case told:
		delete(s.heard, id)
	case !answered:
		s.unchecked = append(s.unchecked, h)
	}
}

// Renewal returns the write of attempt a, which renews the session. The write also removes
// the notices whose locks were checked.
func (s *session) Renewal(a lease.Attempt, versions []string, ch protocol.Changes) *protocol.Write {
	r := protocol.Renewal{Version: a.Version, Lease: a.Lease, Now: s.c.Wall(), Changes: ch}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, word := range slices.Sorted(maps.Keys(s.heard)) {
		if s.heard[word] && len(r.Heard) < mostHeard {
			r.Heard = append(r.Heard, word)
		}
	}
	return s.proto.Renew(s.named(versions), r)
}
