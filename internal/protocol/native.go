package protocol

import (
	"time"
)

// Native is the protocol of leasehold's own layout. Beyond the methods of Protocol, it has
// methods for sessions, done marks, queues, and requests to step down.
type Native interface {
	Protocol

	// SessionKey returns the key of the row of the session with the given id. IsSessionKey
	// reports whether k is the key of a session's row.
	SessionKey(id string) Key
	IsSessionKey(k Key) bool

	// Session returns the protocol of session rows. Its Grant only creates a row, and never
	// takes over an existing row. Its Release marks the session as dead. A dead session never
	// becomes alive again.
	Session() Protocol

	// TellBroken returns the write that adds a notice to a session's row: an operator has
	// broken the given grant under the session. word is the id of the notice. The session's
	// client removes a notice by this id once it has read it. So it does not remove a later
	// notice of the same grant. The write changes neither the version nor the lease, so that
	// no renewal fails. Its condition fails if the row does not exist, if the session is dead,
	// or if its client does not read notices.
	TellBroken(session, word, grant string) *Write

	// Unmark returns the write that removes the mark d from the record of k. Its condition is
	// that the record still contains that mark.
	Unmark(k Key, d Done) *Write

	// Join returns the write that appends w to the queue of a held record, unless the queue
	// contains w already. No lock depends on the queue: if a client writes the record without
	// it, the waiters only lose time.
	Join(k Key, w Waiter) *Write

	// Leave returns the write that removes the entry w.Of from the queue. Its condition is
	// that the entry is still at w.Index.
	Leave(k Key, w QueueEntry) *Write

	// HandToHead returns the write that hands the key to the head of the queue, as HandOver
	// does, and removes the head's entry. g contains the head's owner and grant id, and a new
	// version. The version must differ from the grant id, because a record must never show a
	// version twice. The grant id can come back: if the network delivers a copy of the head's
	// join late, that copy adds the id to the queue again.
	HandToHead(h Hold, g Grant) *Write

	// Ask returns the write that asks the holder of h to step down. Its condition is that the
	// grant of h has not ended. The parameter by is the owner of the client that asks.
	Ask(h Hold, by string, at time.Time) *Write
}

// IsSessionKey reports whether k is the key of a session's row. It returns false for
// layouts without sessions.
func IsSessionKey(p Protocol, k Key) bool {
	native, ok := p.(Native)
	return ok && native.IsSessionKey(k)
}

// DefaultLease is the lease of a client that is not configured with one.
const DefaultLease = 20 * time.Second

// noRow is the version of a row that does not exist.
const noRow = "none"

// NoRow returns a record that stands for a session without a row. DynamoDB's TTL deletes a
// row long after the session has died. An operator may delete it earlier, and the session's
// client may then trust its locks for one more lease. The length of that lease was stored
// only in the row. So the caller passes the lease of the client that observes the session
// instead.
func NoRow(lease time.Duration) Record { return Record{Version: noRow, Lease: lease} }

// IsNoRow reports whether version is the version of a record from NoRow.
func IsNoRow(version string) bool { return version == noRow }
