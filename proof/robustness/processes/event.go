//go:build linux

package processes

import (
	"time"

	"golang.org/x/sys/unix"
)

// Kind is a kind of event.
type Kind string

// Events of workers. Each has a time at which it is true: a belief has the time before the
// lock was checked, and its end by the worker's own decision the time before the release is
// sent.
const (
	Asked    Kind = "asked"    // for a key
	Denied   Kind = "denied"   // the key, with the error
	Granted  Kind = "granted"  // the lock, when first checked, was held at this time
	Believes Kind = "believes" // the lock said that it is held at this time
	Over     Kind = "over"     // the worker stops believing by itself, and goes on to release
	Released Kind = "released" // the release has been answered
	Moved    Kind = "moved"    // its requests go to the Region of this name
	Lost     Kind = "lost"     // the lock said that it is lost
	Sent     Kind = "sent"     // a write is about to be sent
	Landed   Kind = "landed"   // its answer: it was written
	Refused  Kind = "refused"  // its answer: it was not, and never will be
	Unknown  Kind = "unknown"  // no answer
)

// Events of the tormentor.
const (
	Stopped   Kind = "stopped"   // all threads of a worker are stopped from now on
	Continued Kind = "continued" // they may go on from now on
	Killed    Kind = "killed"    // a worker is gone since, by kill -9
	Ended     Kind = "ended"     // a worker has ended, by itself or on request
	Broke     Kind = "broke"     // the network, the server or the disk
	Healed    Kind = "healed"    // all faults have ended
)

// Contents of the tables at the end.
const (
	Receipt Kind = "receipt" // count that a commit wrote
	Count   Kind = "count"   // count of commits, as the last one wrote it
	Share   Kind = "share"   // how many writes with a token one worker has made
	Sum     Kind = "sum"     // how many of all
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

// asHead marks a worker that was killed or stopped as the head of a queue.
func asHead(is bool) string {
	if is {
		return "the head of a line"
	}
	return ""
}

// now is the time since the machine booted, the same for all its processes. It
// goes on while the machine is suspended.
func now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err) // there since Linux 2.6.39
	}
	return time.Duration(ts.Nano())
}
