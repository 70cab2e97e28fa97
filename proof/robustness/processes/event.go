//go:build linux

package processes

import (
	"time"

	"golang.org/x/sys/unix"
)

// Kind is the type of an event in the journal.
type Kind string

// Events that workers record. Each event was true at the time in its field At. So before a worker
// records Granted, Believes or Over, it reads the clock and then checks the lock. It sends the
// release after it has recorded Over.
const (
	Asked    Kind = "asked"    // the worker requests a key
	Denied   Kind = "denied"   // a call failed; Text is its error
	Granted  Kind = "granted"  // the key was granted; At is the time of the first check that found the lock held
	Believes Kind = "believes" // a check found the lock held at the time At
	Over     Kind = "over"     // the worker has decided to release, and no longer believes that it holds the key
	Released Kind = "released" // the call of Release has returned without an error
	Moved    Kind = "moved"    // the worker's requests now go to the Region named in Text
	Lost     Kind = "lost"     // a check found that the lock is lost
	Sent     Kind = "sent"     // a write is about to be sent
	Landed   Kind = "landed"   // the reply to a write: DynamoDB has applied it
	Refused  Kind = "refused"  // the reply to a write: DynamoDB has not applied it and never will
	Unknown  Kind = "unknown"  // the worker does not know whether the write was applied
)

// Events that the test process records about the faults that it causes, and about the ends of
// workers.
const (
	Stopped   Kind = "stopped"   // all threads of a worker are suspended from now on
	Continued Kind = "continued" // the threads of the worker may run again from now on
	Killed    Kind = "killed"    // SIGKILL has ended a worker
	Ended     Kind = "ended"     // a worker has ended, by itself or on request
	Broke     Kind = "broke"     // a fault of the network, the server or the disk begins
	Healed    Kind = "healed"    // all faults have ended
)

// Events that describe the contents of the tables at the end of the test.
const (
	Receipt Kind = "receipt" // an item that one commit has written; N is the count after the commit
	Count   Kind = "count"   // the counter that commits increment
	Share   Kind = "share"   // how many writes of one worker the counter with token comparison has counted
	Sum     Kind = "sum"     // how many writes of all workers the counter with token comparison has counted
)

// Event is one line of the journal.
type Event struct {
	At    time.Duration `json:"at"` // time since the machine booted
	Who   string        `json:"who,omitempty"`
	Kind  Kind          `json:"kind"`
	Key   string        `json:"key,omitempty"`
	Grant int           `json:"grant,omitempty"` // number of the grant among the grants of the worker
	Token int64         `json:"token,omitempty"`
	Lease time.Duration `json:"lease,omitempty"`
	Until time.Duration `json:"until,omitempty"` // time until which the lock is trusted; not later than Lock.TrustedUntil
	Dead  string        `json:"dead,omitempty"`  // after a takeover: the owner name in the record of the dead holder
	Write string        `json:"write,omitempty"` // id of the write
	Plain bool          `json:"plain,omitempty"` // true for a write whose target compares tokens; false for a commit
	N     int64         `json:"n,omitempty"`
	Text  string        `json:"text,omitempty"`
}

// asHead returns the field Text for an event about a killed or suspended worker: "the head of a
// queue" if the worker was the head, and otherwise "".
func asHead(is bool) string {
	if is {
		return "the head of a queue"
	}
	return ""
}

// The function "now" returns the time since the machine booted. All processes of the machine read
// the same clock, which also runs while the machine sleeps.
func now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err) // impossible: every Linux since 2.6.39 has CLOCK_BOOTTIME
	}
	return time.Duration(ts.Nano())
}
