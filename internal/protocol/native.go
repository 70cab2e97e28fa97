package protocol

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Native is the protocol of leasehold's own layout. Beyond the methods of Protocol, it has
// methods for sessions, done marks, queues, and requests to step down.
type Native interface {
	Protocol

	// SessionKey returns the key of the row of the session with the given id.
	SessionKey(id string) Key

	// Session returns the protocol of session rows. The Grant method of that protocol only
	// creates rows: it never takes over an existing row. The Release method marks the session
	// as dead. A dead session never becomes alive again.
	Session() Protocol

	// TellBroken returns the write that adds a notice to a session's row: an operator has broken
	// the given grant. The notice has the id "word", so that the session's client can later remove
	// exactly the notices that it has read. The write changes neither version nor lease, so no
	// renewal fails. It is rejected if the row is missing, the session is dead, or the session's
	// client does not read notices.
	TellBroken(session, word, grant string) *Write

	// Unmark returns the write that removes the mark d from the record of k, on the condition
	// that the record still contains that mark.
	Unmark(k Key, d Done) *Write

	// Join returns the write that appends w to the queue in the record of a held key, unless the
	// queue already contains w. Mutual exclusion does not depend on the queue: if another library
	// drops it, waiters only lose time.
	Join(k Key, w Waiter) *Write

	// Leave returns the write that removes the entry of the waiter w.Of from the queue, if this entry
	// still has the index w.Index.
	Leave(k Key, w QueueEntry) *Write

	// HandToHead returns the write of a HandOver to the queue's head. The write also removes the
	// head's entry. Grant g has the head's owner and grant id. If the head's join was applied twice,
	// two hand-overs may have this grant id. So g has a new version, because no version may appear
	// twice.
	HandToHead(h Hold, g Grant) *Write

	// Ask returns the write that asks the holder of h to step down. Its condition is that the grant of
	// h has not ended. The parameter "by" is the owner name of the client that asks.
	Ask(h Hold, by string, at time.Time) *Write
}

// SessionPrefix is the prefix of the partition keys of session rows. A session row contains
// the lease that all locks of a client share.
const SessionPrefix = "leasehold/session/"

// IsSessionKey reports whether k is the key of a session's row. It returns false for
// layouts without sessions.
func IsSessionKey(p Protocol, k Key) bool {
	native, hasSessions := p.(Native)
	id, hasPrefix := strings.CutPrefix(k.Partition, SessionPrefix)
	return hasSessions && hasPrefix && k == native.SessionKey(id)
}

// DefaultLease is the lease of a client whose configuration contains no lease.
const DefaultLease = 20 * time.Second

// noRow is the version in a record from NoRow.
const noRow = "none"

// NoRow returns a record that stands for the missing row of a session. An operator may delete the
// row while the session's client still trusts its locks. Only the row contained the session's
// lease, so the caller passes the observing client's lease instead.
func NoRow(lease time.Duration) Record { return Record{Version: noRow, Lease: lease} }

// IsNoRow reports whether version is the version of a record from NoRow.
func IsNoRow(version string) bool { return version == noRow }

// A Once identifies work that clients are to do only once under a lock, by a label or a time
// period. The zero Once identifies no work, so a grant with the zero Once ignores the done mark in
// the record.
type Once struct {
	Label  string    // label of the work; the work counts as done if the done mark in the record has the same label
	Period time.Time // start of the period, in whole milliseconds; the work counts as done if the done mark in the record has this period or a later one; zero if Label is set
}

// None reports whether o names no work.
func (o Once) None() bool { return o == Once{} }

// IsDone reports whether the mark d means that the work o is done. It returns false if d is
// nil, or if o names no work.
func (o Once) IsDone(d *Done) bool {
	switch {
	case d == nil || o.None():
		return false
	case o.Label != "":
		return d.Once == o.Label
	}
	return !d.Period.IsZero() && !d.Period.Before(o.Period)
}

// Done is the done mark in a record: the work that a client last completed under the lock. The
// release at the end of the work writes the mark, so the client held the lock until the work was
// done.
type Done struct {
	Once   string    // label of the work; empty if a period names the work
	Period time.Time // start of the period; zero if a label names the work
	Owner  string    // owner of the grant under which the work was done
	At     time.Time // time when the work was done, by the holder's clock
	Token  int64     // fencing token of the grant
}

// ShortestPeriod is the shortest period that PeriodProblem accepts.
const ShortestPeriod = time.Second

// PeriodOf returns the period of the given length that contains the given time. The first
// period begins at 1970-01-01 00:00 UTC. So if the length divides a day evenly, a period
// begins at each midnight in UTC.
func PeriodOf(now time.Time, length time.Duration) Once {
	ms, step := now.UnixMilli(), length.Milliseconds()
	past := ms % step
	if past < 0 {
		past += step
	}
	return Once{Period: time.UnixMilli(ms - past).UTC()}
}

// LongestLabel is the maximum length in bytes of a label of work. The limit is low because the
// record stores the label.
const LongestLabel = 256

// LabelProblem returns what is wrong with the label of a Once, or "" if the label is valid.
func LabelProblem(label string) string {
	switch {
	case label == "":
		return "the label is empty"
	case len(label) > LongestLabel:
		return fmt.Sprintf("the label has %d bytes: use at most %d", len(label), LongestLabel)
	case !utf8.ValidString(label):
		return "the label is not UTF-8"
	}
	return ""
}

// PeriodProblem returns the problem with the length of a period, or "" if the length is
// valid.
func PeriodProblem(length time.Duration) string {
	switch {
	case length < ShortestPeriod:
		return fmt.Sprintf("a period of %v: at least %v", length, ShortestPeriod)
	case length%time.Millisecond != 0:
		return fmt.Sprintf("a period of %v: use whole milliseconds", length)
	}
	return ""
}

// Waiter is a waiter in the queue of a record.
type Waiter struct {
	Grant string // id of the grant by which the waiter will hold the key
	Owner string
}

// QueueEntry is an entry in the queue of a record: its index, from 0, and its waiter.
type QueueEntry struct {
	Index int
	Of    Waiter
}

// MostWaiters is the maximum number of entries in the queue of a record. With short owner names and
// no data, a record with a full queue is below a kilobyte. Its writes cost one write unit (AWS,
// "Read and write capacity mode").
const MostWaiters = 16

// LastPlaces is the number of reserved places in a queue: only waiters that have waited longer than
// half of the queue's waiters may use them. Otherwise clients that have just held the key could
// refill the queue, and other waiters might never join it.
const LastPlaces = 3

// MostWaitersBytes is the maximum number of bytes that a full queue adds to a record. DynamoDB
// counts 16 bytes for an entry's grant id, 17 for the client id, 1 for the list element, and the
// owner's name.
const MostWaitersBytes = MostWaiters * (16 + 17 + 1 + LongestOwner)
