package protocol

import (
	"time"
)

// Native is the protocol of leasehold's own layout. Beyond Protocol, its records may belong
// to a session, contain a mark of the last work that was done and a queue of waiters, and
// ask their holder to step down.
type Native interface {
	Protocol

	// SessionKey returns the key of a session's row. IsSessionKey reports whether
	// a key is one.
	SessionKey(id string) Key
	IsSessionKey(k Key) bool

	// Session returns the protocol of session rows. A grant creates a row and
	// never takes one over. A release marks the session as dead; that is final.
	Session() Protocol

	// TellBroken notifies a session's client, through the session's row, that a grant under
	// the session was broken. word is the id of this notice. The client removes a notice
	// that it has read by its id, so that it removes no later notice of the same grant. The
	// write changes neither version nor lease, so that no renewal fails. Its condition
	// fails if the row does not exist, is dead, or belongs to a client that does not read
	// notices.
	TellBroken(session, word, grant string) *Write

	// Unmark removes the mark d if the record still has it.
	Unmark(k Key, d Done) *Write

	// Join appends w to the queue of a held record, unless w is there already. The queue is
	// advice: if a client writes the record without the queue, the waiters only lose time.
	Join(k Key, w Waiter) *Write

	// Leave removes w from the queue if w is still at its position.
	Leave(k Key, w QueueEntry) *Write

	// HandToHead is HandOver to the head of the queue. It also removes the head's entry. g
	// contains the head's owner and grant id, and a new version. The id cannot serve as the
	// version: a late copy of the head's join may bring the id back, but a version must
	// never come back.
	HandToHead(h Hold, g Grant) *Write

	// Ask asks the holder to step down, if the record still shows the grant of h.
	Ask(h Hold, by string, at time.Time) *Write
}

// IsSessionKey reports whether k is the key of a session's row.
func IsSessionKey(p Protocol, k Key) bool {
	native, ok := p.(Native)
	return ok && native.IsSessionKey(k)
}

// DefaultLease is the lease of a client that is not configured with one.
const DefaultLease = 20 * time.Second

// noRow is the version of a row that does not exist.
const noRow = "none"

// NoRow returns the record of a session whose row does not exist. TTL deletes a row long
// after the session has died. An operator may delete it earlier, and then the session's
// locks may still be trusted for one lease. The session's own lease is gone with the row,
// so the caller passes the observer's lease.
func NoRow(lease time.Duration) Record { return Record{Version: noRow, Lease: lease} }

// IsNoRow reports whether v is the version of a NoRow record.
func IsNoRow(version string) bool { return version == noRow }
