//go:build linux

package processes

import (
	"time"

	"golang.org/x/sys/unix"
)

// Kind is a kind of event.
type Kind string

// These are events of workers. The statement of each event is true at the time of the
// event. For a belief, the worker reads the clock before it checks the lock. If the worker
// decides to stop believing, it reads the clock before it sends the release.
const (
	Asked    Kind = "asked"    // the worker asks for a key
	Denied   Kind = "denied"   // a call failed, with this error
	Granted  Kind = "granted"  // the key was granted; At is the time of the first check that found the lock held
	Believes Kind = "believes" // the lock said that it is held at this time
	Over     Kind = "over"     // the worker stops believing by its own decision, and then releases
	Released Kind = "released" // the release has been answered
	Moved    Kind = "moved"    // the worker's requests now go to the Region of this name
	Lost     Kind = "lost"     // the lock said that it is lost
	Sent     Kind = "sent"     // a write is about to be sent
	Landed   Kind = "landed"   // answer to a write: it was applied
	Refused  Kind = "refused"  // answer to a write: it was not applied, and never will be
	Unknown  Kind = "unknown"  // no answer says whether the write was applied
)

// These are events that the test program, which causes the faults, records.
const (
	Stopped   Kind = "stopped"   // all threads of a worker are stopped from now on
	Continued Kind = "continued" // the threads of the worker may run again from now on
	Killed    Kind = "killed"    // SIGKILL has ended a worker
	Ended     Kind = "ended"     // a worker has ended, by itself or on request
	Broke     Kind = "broke"     // a fault of the network, the server or the disk begins
	Healed    Kind = "healed"    // all faults have ended
)

// These events record the contents of the tables at the end.
const (
	Receipt Kind = "receipt" // count that one commit wrote
	Count   Kind = "count"   // count of commits that the last commit wrote
	Share   Kind = "share"   // number of writes with a token by one worker
	Sum     Kind = "sum"     // number of writes with a token by all workers
)

// Event is one line of the journal.
type Event struct {
	At    time.Duration `json:"at"` // since the machine booted
	Who   string        `json:"who,omitempty"`
	Kind  Kind          `json:"kind"`
	Key   string        `json:"key,omitempty"`
	Grant int           `json:"grant,omitempty"` // number of the worker's grant
	Token int64         `json:"token,omitempty"`
	Lease time.Duration `json:"lease,omitempty"`
	Until time.Duration `json:"until,omitempty"` // when trust ends, never later than the lock says
	Dead  string        `json:"dead,omitempty"`  // the dead holder that the key was taken over from
	Write string        `json:"write,omitempty"` // its id
	Plain bool          `json:"plain,omitempty"` // a write that compares tokens, not a commit
	N     int64         `json:"n,omitempty"`
	Text  string        `json:"text,omitempty"`
}

// asHead returns the text that marks a worker as the head of a queue when it was killed or
// stopped.
func asHead(is bool) string {
	if is {
		return "the head of a queue"
	}
	return ""
}

// now returns the time since the machine booted, which is the same for all its processes.
// The time also passes while the machine is suspended.
func now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err) // CLOCK_BOOTTIME exists since Linux 2.6.39
	}
	return time.Duration(ts.Nano())
}
