//go:build linux

package processes

import (
	"time"

	"golang.org/x/sys/unix"
)

// Kind says what happened.
type Kind string

// What workers write down. Each is stamped so that what it says is true at its
// time: a belief with the time from before the lock was asked, the end of one by
// the worker's own decision before the release is sent.
const (
	Asked    Kind = "asked"    // for a key
	Denied   Kind = "denied"   // the key, with the error
	Granted  Kind = "granted"  // and the lock said, when first asked, that it was held at this time
	Believes Kind = "believes" // the lock said that it is held at this time
	Over     Kind = "over"     // the worker stops believing by itself, and goes on to release
	Lost     Kind = "lost"     // the lock said that it is lost
	Sent     Kind = "sent"     // a write is about to be sent
	Landed   Kind = "landed"   // its answer: it was written
	Refused  Kind = "refused"  // its answer: it was not, and never will be
	Unknown  Kind = "unknown"  // no answer
)

// What the tormentor writes down.
const (
	Stopped   Kind = "stopped"   // all threads of a worker stand still since
	Continued Kind = "continued" // they may go on from now on
	Killed    Kind = "killed"    // a worker is gone since, by kill -9
	Ended     Kind = "ended"     // a worker is gone since, by itself or because it was asked to
	Broke     Kind = "broke"     // the network, the server or the disk
	Healed    Kind = "healed"    // nothing is broken, stopped or killed any more
)

// What is in the tables at the end.
const (
	Receipt Kind = "receipt" // of a commit: the count it wrote
	Count   Kind = "count"   // of commits, as the last one wrote it
	Share   Kind = "share"   // how many writes with a token are there of one worker
	Sum     Kind = "sum"     // how many of all
)

// Event is one line of the journal.
type Event struct {
	At    time.Duration `json:"at"` // since the machine booted
	Who   string        `json:"who,omitempty"`
	Kind  Kind          `json:"kind"`
	Key   string        `json:"key,omitempty"`
	Grant int           `json:"grant,omitempty"` // which of the worker's
	Token int64         `json:"token,omitempty"`
	Lease time.Duration `json:"lease,omitempty"`
	Until time.Duration `json:"until,omitempty"` // when trust ends, never later than the lock says
	Dead  string        `json:"dead,omitempty"`  // from whom the key was taken over
	Write string        `json:"write,omitempty"` // its id
	Plain bool          `json:"plain,omitempty"` // a write that compares tokens, not a commit
	N     int64         `json:"n,omitempty"`
	Text  string        `json:"text,omitempty"`
}

// asHead is what is said of a worker that was killed or stopped, if it stood first in a line.
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
