//go:build linux

package processes

import (
	"time"

	"golang.org/x/sys/unix"
)

// Kind is a kind of event.
type Kind string

// Events of workers. Each is true at the time in Event.At. For an event that says that the
// lock is held, the worker reads the clock before it checks the lock. For the end of its
// belief, it reads the clock before it sends the release.
const (
	Asked    Kind = "asked"    // the worker requests a key
	Denied   Kind = "denied"   // a call failed; Text is its error
	Granted  Kind = "granted"  // the key was granted; At is the time of the first check that found the lock held
	Believes Kind = "believes" // the lock reported that it was held at this time
	Over     Kind = "over"     // the worker has decided to release, and no longer believes that it holds the key
	Released Kind = "released" // the release has been answered
	Moved    Kind = "moved"    // the worker's requests now go to the Region named in Text
	Lost     Kind = "lost"     // the lock reported that it is lost
	Sent     Kind = "sent"     // a write is about to be sent
	Landed   Kind = "landed"   // answer to a write: it was applied
	Refused  Kind = "refused"  // answer to a write: it was not applied, and never will be
	Unknown  Kind = "unknown"  // the worker does not know whether the write was applied
)

// Events that the test records, which causes the faults.
const (
	Stopped   Kind = "stopped"   // all threads of a worker are stopped from now on
	Continued Kind = "continued" // the threads of the worker may run again from now on
	Killed    Kind = "killed"    // SIGKILL has ended a worker
	Ended     Kind = "ended"     // a worker has ended, by itself or on request
	Broke     Kind = "broke"     // a fault of the network, the server or the disk begins
	Healed    Kind = "healed"    // all faults have ended
)

// Contents of the tables at the end.
const (
	Receipt Kind = "receipt" // item written by one commit; N is the count after the commit
	Count   Kind = "count"   // the counter of commits at the end
	Share   Kind = "share"   // number of one worker's writes that were applied with a token
	Sum     Kind = "sum"     // number of all writes that were applied with a token
)

// Event is one line of the journal.
type Event struct {
	At    time.Duration `json:"at"` // time since the machine booted
	Who   string        `json:"who,omitempty"`
	Kind  Kind          `json:"kind"`
	Key   string        `json:"key,omitempty"`
	Grant int           `json:"grant,omitempty"` // number of the worker's grant
	Token int64         `json:"token,omitempty"`
	Lease time.Duration `json:"lease,omitempty"`
	Until time.Duration `json:"until,omitempty"` // end of trust, at most as late as the lock reports it
	Dead  string        `json:"dead,omitempty"`  // owner of the dead holder, for a takeover
	Write string        `json:"write,omitempty"` // id of the write
	Plain bool          `json:"plain,omitempty"` // whether the write is one that compares tokens, instead of a commit
	N     int64         `json:"n,omitempty"`
	Text  string        `json:"text,omitempty"`
}

// asHead returns the text of an event for a worker that was killed or paused: "" unless the
// worker was the head of a queue.
func asHead(is bool) string {
	if is {
		return "the head of a queue"
	}
	return ""
}

// now returns the time since the machine booted. All processes of the machine read the same
// clock. It also runs while the machine is suspended.
func now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err) // CLOCK_BOOTTIME exists since Linux 2.6.39
	}
	return time.Duration(ts.Nano())
}
