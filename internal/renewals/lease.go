package renewals

import (
	"container/heap"
	"time"
)

// Lease is one that is renewed until it is removed. Its queue guards it.
type Lease struct {
	send  func() Outcome
	times Times

	state  state
	due    time.Time
	ends   time.Time // its trust, if nothing is renewed
	number int       // of leases, to decide between equals
	index  int       // in the line it stands in

	failures  int       // in a row
	doubtful  bool      // the last attempt had no answer or was throttled
	displaced bool      // it is not in its place of the period
	ready     time.Time // when it was found to be due
	sent      time.Time // the attempt under way
	place     place     // of that
	hang      *time.Timer
}

// Times are how often a lease is renewed and how long a renewal is trusted.
type Times struct{ Every, Trust time.Duration }

// Outcome is what an attempt came to.
type Outcome int

// The outcomes.
const (
	Over      Outcome = iota // the lease is not renewed any more
	Renewed                  // Queue.Renewed has been called
	Silent                   // no answer
	Throttled                // the table takes no more now
	Conflict                 // with another write of the record, which is over by now
	Failed                   // any other answer
)

// state is where a lease is on its way.
type state int

const (
	later   state = iota // it is not due yet
	ready                // it is due
	sending              // its attempt is under way
	removed
)

// place is what an attempt under way counts for.
type place int

const (
	none     place = iota // nothing: it waits for a write of its own lock
	ordinary              // one of the places
	unsure                // one of those for doubtful leases
	hanging               // none of the places any more, but one of all that are in flight
)

// line is a queue of leases in some order.
type line struct {
	leases []*Lease
	before func(a, b *Lease) bool
}

func byDue(a, b *Lease) bool {
	if a.due.Equal(b.due) {
		return a.number < b.number
	}
	return a.due.Before(b.due)
}

func byTrust(a, b *Lease) bool {
	if a.ends.Equal(b.ends) {
		return a.number < b.number
	}
	return a.ends.Before(b.ends)
}

// first returns the first in line, nil if there is none.
func (n *line) first() *Lease {
	if len(n.leases) == 0 {
		return nil
	}
	return n.leases[0]
}

func (n *line) add(l *Lease)    { heap.Push(n, l) }
func (n *line) remove(l *Lease) { heap.Remove(n, l.index) }

// Len, Less, Swap, Push and Pop are for package heap.
func (n *line) Len() int           { return len(n.leases) }
func (n *line) Less(i, j int) bool { return n.before(n.leases[i], n.leases[j]) }

func (n *line) Swap(i, j int) {
	n.leases[i], n.leases[j] = n.leases[j], n.leases[i]
	n.leases[i].index, n.leases[j].index = i, j
}

func (n *line) Push(x any) {
	l := x.(*Lease)
	l.index = len(n.leases)
	n.leases = append(n.leases, l)
}

func (n *line) Pop() any {
	last := len(n.leases) - 1
	l := n.leases[last]
	n.leases[last] = nil
	n.leases = n.leases[:last]
	return l
}
