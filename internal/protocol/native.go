package protocol

import (
	"time"
)

// Native is what leasehold's own layout can do beside what every layout can: its records
// may belong to a session, say what was done last, keep a line of waiters, and ask their
// holder to step down.
type Native interface {
	Protocol

	// SessionKey returns the key of a session's row. IsSessionKey reports whether
	// a key is one.
	SessionKey(id string) Key
	IsSessionKey(k Key) bool

	// Session returns the protocol of session rows. A grant creates a row and
	// never takes one over. A release marks the session as dead; that is final.
	Session() Protocol

	// TellBroken tells the client of a session, by the session's row, that a grant
	// under it was broken. word is an id that no other telling has: the client
	// removes what it has heard by that, and no later word of the same grant. It
	// changes neither version nor lease, so that no renewal fails. Its condition
	// fails if the row is not there, is dead, or is of a client that does not listen.
	TellBroken(session, word, grant string) *Write

	// Unmark removes a mark of what was done last, if the record still has it.
	Unmark(k Key, d Done) *Write

	// Join puts w at the end of the line of a record that somebody holds, once. A line is an
	// advice: whoever writes the record without it loses its waiters time, and no more.
	Join(k Key, w Waiter) *Write

	// Leave takes w out of the line, if it stands there.
	Leave(k Key, w Place) *Write

	// HandToHead is HandOver to the head of the line, who leaves it. g names its owner and
	// the id of its grant. The version is new, as in every attempt: the head's entry may
	// come back by a late copy of its join, and what names a version rests on that this
	// one never does.
	HandToHead(h Hold, g Grant) *Write

	// Ask asks the holder to step down, if the record still shows its grant.
	Ask(h Hold, by string, at time.Time) *Write
}

// IsSessionKey reports whether a key is that of a session's row.
func IsSessionKey(p Protocol, k Key) bool {
	native, ok := p.(Native)
	return ok && native.IsSessionKey(k)
}

// DefaultLease is the lease of a client whose configuration names none.
const DefaultLease = 20 * time.Second

// noRow stands for the version of a row that is not there.
const noRow = "none"

// NoRow stands for the row of a session that is not there: TTL has deleted it long after
// the session's death, or somebody by hand. Then its locks may still be trusted for up to
// a lease. How long that is, only the observer's own configuration can tell.
func NoRow(lease time.Duration) Record { return Record{Version: noRow, Lease: lease} }

// IsNoRow reports whether a version is that of NoRow.
func IsNoRow(version string) bool { return version == noRow }
