package ui

import (
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// mostGone is the maximum number of deleted keys whose history the board keeps.
const mostGone = 10_000

// mostBroken is the maximum number of break reasons in board.broken.
const mostBroken = 1000

// board contains the last observed state and the history of each key of the table. It is not
// safe for concurrent use.
type board struct {
	proto protocol.Protocol
	rule  liveness.Rule

	entries   map[protocol.Key]*entry
	lastID    int
	whole     bool                       // whether the whole table has been read at least once
	under     map[string]map[*entry]bool // held locks, by the id of the session that their holder renews
	missing   map[string]liveness.Beat   // by session id: sessions that have locks but no row, and how long the row has been missing
	changed   map[*entry]bool            // entries whose changes have not been sent to the pages yet
	gone      []*entry                   // entries of keys whose record was deleted, in order of deletion
	forgotten time.Time                  // time when an entry was last dropped from gone
	// Reasons of those breaks through this server that the key's record cannot show (see tryBreak).
	// Each reason is kept until a read shows that the grant has ended.
	broken map[brokenGrant]string
	order  []brokenGrant // keys of broken, oldest first
}

// brokenGrant identifies a grant that a page of this server has broken or is breaking.
type brokenGrant struct {
	key   protocol.Key
	grant string
}

// entry contains the state and the history of one key, as reads have shown them.
type entry struct {
	id      int
	lock    Lock
	history History
	told    rowView // table row that was last sent to the pages
	toldOf  bool
}

func newBoard(proto protocol.Protocol, by liveness.Rule) *board {
	return &board{
		proto: proto, rule: by, entries: map[protocol.Key]*entry{}, changed: map[*entry]bool{},
		under: map[string]map[*entry]bool{}, missing: map[string]liveness.Beat{}, broken: map[brokenGrant]string{},
	}
}

// see is called for each item that a read has returned, and records it.
func (b *board) see(item protocol.Item, look liveness.Reading) {
	found := holders.Read(b.proto, item)
	e := b.entries[found.Key]
	var before *Lock
	if e == nil {
		b.lastID++
		e = &entry{id: b.lastID, history: History{Since: b.forgotten}}
		b.entries[found.Key] = e
	} else {
		if look.Asked.Before(e.lock.Look.Asked) {
			return // a read that was sent later has already been recorded
		}
		before = &e.lock
	}
	b.forget(e)
	if e.lock.Gone {
		b.gone = slices.DeleteFunc(b.gone, func(other *entry) bool { return other == e })
	}
	now, events := observe(before, found, look, b.rule, !b.whole, b.wasBroken(found.Key))
	b.enter(e, now, events)
	if found.Kind == holders.KindSession {
		b.judge(sessionOf(found.Key), look)
	}
	if id := now.session(); id != "" {
		b.judge(id, look)
	}
}

// session returns the id of the lock's session, or "" if the lock has no session.
func (l Lock) session() string {
	if l.Holder == nil || l.Kind != holders.KindLock {
		return ""
	}
	return l.Holder.Record.Session
}

// seeNone records that a read has found no item with the given key.
func (b *board) seeNone(key protocol.Key, look liveness.Reading) {
	e := b.entries[key]
	if e == nil || e.lock.Gone || look.Asked.Before(e.lock.Look.Asked) {
		return
	}
	b.forget(e)
	now, events := vanished(e.lock, look, b.wasBroken(key))
	b.enter(e, now, events)
	b.gone = append(b.gone, e)
	if len(b.gone) > mostGone {
		delete(b.entries, b.gone[0].lock.Key)
		b.gone, b.forgotten = b.gone[1:], look.Answered
	}
	if now.Kind == holders.KindSession {
		b.judge(sessionOf(key), look)
	}
}

func (b *board) enter(e *entry, now Lock, events []Event) {
	e.lock = now
	e.history.add(now, events)
	b.changed[e] = true
	if id := now.session(); id != "" {
		if b.under[id] == nil {
			b.under[id] = map[*entry]bool{}
		}
		b.under[id][e] = true
		b.touch(id)
	}
}

// touch makes the board send the row of a session to the pages again, because the number of the
// session's locks has changed. Pages show a dead session only while it has locks.
func (b *board) touch(id string) {
	if row := b.sessionRow(id); row != nil {
		b.changed[row] = true
	}
}

// sessionRow returns the entry of a session's row, or nil if no read has shown the row.
func (b *board) sessionRow(id string) *entry {
	sharing, ok := b.proto.(protocol.Native)
	if !ok || id == "" {
		return nil
	}
	return b.entries[sharing.SessionKey(id)]
}

// over reports whether e is a session that is dead and has no locks. Pages do not show such a
// session, because it concerns neither operators nor waiters.
func (b *board) over(e *entry) bool {
	return e.lock.Kind == holders.KindSession && len(b.under[sessionOf(e.lock.Key)]) == 0 &&
		(e.lock.Holder == nil || e.lock.Holder.Beat.Dead)
}

// forget removes e from the set of its session's locks.
func (b *board) forget(e *entry) {
	id := e.lock.session()
	if b.under[id][e] {
		b.touch(id)
	}
	delete(b.under[id], e)
	if len(b.under[id]) == 0 {
		delete(b.under, id)
	}
}

// finish is called after a pass has read the table to its end. It treats a record as deleted if
// the last read that returned the record was before this pass.
func (b *board) finish(pass liveness.Reading) {
	b.whole = true
	for key, e := range b.entries {
		if !e.lock.Gone && e.lock.Look.Asked.Before(pass.Asked) {
			b.seeNone(key, pass)
		}
	}
	for id := range b.under {
		b.judge(id, pass)
	}
}

// judge finds out from a session's row whether the session's client is live or dead, and marks the
// locks of the session accordingly.
func (b *board) judge(id string, look liveness.Reading) {
	if _, ok := b.proto.(protocol.Native); !ok {
		return
	}
	var session liveness.Beat
	if e := b.sessionRow(id); e != nil && !e.lock.Gone {
		if e.lock.Kind == holders.KindDamaged {
			return // the row does not show whether the client is live, and no waiter takes a lock of the session over
		}
		session = liveness.Beat{Until: e.lock.Look.Answered, Dead: true} // the session has ended, and its client will not renew it again
		if e.lock.Holder != nil {
			session = e.lock.Holder.Beat
		}
		delete(b.missing, id)
	} else if !b.whole {
		// The session may still be live: its row may be in a part of the table that no read has
		// reached yet.
		return
	} else {
		session = b.rule.Next(b.missing[id], protocol.NoRow(protocol.DefaultLease), look)
		b.missing[id] = session
	}
	for e := range b.under[id] {
		h := e.lock.Holder
		was := h.Beat.Dead
		h.Beat = under(h.Beat, session)
		if h.Beat.Dead == was {
			continue
		}
		c := change{at: look.Answered}
		if was {
			c.add(EventBack, *h)
		} else {
			c.add(EventDeath, *h)
		}
		e.history.add(e.lock, c.events)
		b.changed[e] = true
	}
}

// due returns a key whose holder's lease has expired since the last read of the key. The holder
// may be dead. The scanner should read that key now, without waiting for the next pass.
func (b *board) due(now time.Time) (key protocol.Key, ok bool) {
	for key, e := range b.entries {
		h := e.lock.Holder
		if h != nil && e.lock.session() == "" && !h.Beat.Dead && !now.Before(h.Beat.Until) && e.lock.Look.Asked.Before(h.Beat.Until) {
			return key, true
		}
	}
	return protocol.Key{}, false
}

// willBreak stores the reason of a break before the break is attempted.
func (b *board) willBreak(g brokenGrant, reason string) {
	if _, known := b.broken[g]; !known {
		b.order = append(b.order, g)
	}
	b.broken[g] = reason
	if len(b.order) > mostBroken {
		b.wontBreak(b.order[0])
	}
}

// wontBreak forgets the reason of a break, because the break has failed, a read has shown it, or
// there are more than mostBroken reasons and this is the oldest.
func (b *board) wontBreak(g brokenGrant) {
	delete(b.broken, g)
	b.order = slices.DeleteFunc(b.order, func(other brokenGrant) bool { return other == g })
}

// wasBroken returns a function that takes the id of a grant of key. If the grant was broken
// through this server, the function returns the reason of the break and true, and removes the
// break from the board.
func (b *board) wasBroken(key protocol.Key) func(grant string) (string, bool) {
	return func(grant string) (string, bool) {
		g := brokenGrant{key, grant}
		reason, ok := b.broken[g]
		if ok {
			b.wontBreak(g)
		}
		return reason, ok
	}
}

// sessionOf returns the id of a session from the key of the session's row.
func sessionOf(key protocol.Key) string {
	for i := len(key.Partition) - 1; i >= 0; i-- {
		if key.Partition[i] == '/' {
			return key.Partition[i+1:]
		}
	}
	return key.Partition
}
