package renewals

import (
	"cmp"
	"container/heap"
	"time"
)

// Lease is a lease that is renewed until it is removed. The mutex of the Scheduler guards
// its fields.
type Lease struct {
	send  func() Outcome
	times Times

	due    time.Time
	ends   time.Time // when trust ends unless the lease is renewed
	number int       // position in the order of Add, to break ties

	line    *line // priority queue that the lease is in; nil while its attempt is in flight, and after Remove
	index   int   // index of the lease in that queue
	sending bool  // its attempt is in flight
	removed bool

	failures  int         // consecutive failures
	doubtful  bool        // the last attempt had no answer or was throttled
	displaced bool        // the next renewal should come at a random time of the period
	ready     time.Time   // when the lease was found to be due
	sent      time.Time   // when the last attempt was sent
	place     place       // place of the attempt in flight
	hang      *time.Timer // timer that takes the place from an attempt that hangs
}

// Times says how often a lease is renewed, and for how long a renewal is trusted.
type Times struct{ Every, Trust time.Duration }

// Outcome is the result of an attempt.
type Outcome int

// Values of Outcome.
const (
	Over      Outcome = iota // the lease is no longer renewed
	Renewed                  // success; Scheduler.Renewed has been called
	Silent                   // no answer
	Throttled                // the table accepts no more requests at the moment
	Conflict                 // conflict with another write of the record; that write has ended
	Failed                   // any other answer
)

// place says how an attempt in flight is counted.
type place int

const (
	none     place = iota // the attempt is not counted, as it waits for another write of its own lock
	ordinary              // the attempt takes a place
	unsure                // the attempt takes a place for doubtful leases
	hanging               // the attempt takes no place, but counts as in flight
)

// line is a priority queue of leases.
type line struct {
	leases []*Lease
	before func(a, b *Lease) bool
}

func byDue(a, b *Lease) bool {
	return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.number, b.number)) < 0
}

func byTrust(a, b *Lease) bool {
	return cmp.Or(a.ends.Compare(b.ends), cmp.Compare(a.number, b.number)) < 0
}

// first returns the first lease of the queue, or nil if the queue is empty.
func (n *line) first() *Lease {
	if len(n.leases) == 0 {
		return nil
	}
	return n.leases[0]
}

func (n *line) add(l *Lease) { heap.Push(n, l) }

// leaveLine removes the lease from its priority queue, if it is in one.
func (l *Lease) leaveLine() {
	if l.line != nil {
		heap.Remove(l.line, l.index)
	}
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (n *line) Len() int           { return len(n.leases) }
func (n *line) Less(i, j int) bool { return n.before(n.leases[i], n.leases[j]) }

func (n *line) Swap(i, j int) {
	n.leases[i], n.leases[j] = n.leases[j], n.leases[i]
	n.leases[i].index, n.leases[j].index = i, j
}

func (n *line) Push(x any) {
	l := x.(*Lease)
	l.line, l.index = n, len(n.leases)
	n.leases = append(n.leases, l)
}

func (n *line) Pop() any {
	last := len(n.leases) - 1
	l := n.leases[last]
	l.line = nil
	n.leases[last] = nil
	n.leases = n.leases[:last]
	return l
}
