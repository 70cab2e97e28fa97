package renewals

import (
	"cmp"
	"container/heap"
	"time"
)

// Lease is a lease that the Scheduler renews until it is removed. The Scheduler's mutex
// guards its fields.
type Lease struct {
	send  func() Outcome
	times Times

	due    time.Time
	ends   time.Time // when trust ends if no renewal succeeds before that
	number int       // number of the lease in the order of Add; breaks ties between leases

	line    *line // priority queue that contains the lease; nil while its attempt is in flight, and after Remove
	index   int   // index of the lease in its priority queue
	removed bool

	failures  int         // number of consecutive attempts that failed
	doubtful  bool        // the last attempt to renew had no answer, or was throttled
	displaced bool        // the renewal after the next success is due at a random time of the period, not at its end
	ready     time.Time   // when the Scheduler found that the lease was due
	sent      time.Time   // when the last attempt was sent
	place     place       // kind of slot that the attempt in flight occupies
	hang      *time.Timer // timer that takes the slot from an attempt that hangs
}

// Times is the period of a lease's renewals, and how long the client trusts a lease after each one.
type Times struct{ Every, Trust time.Duration }

// Outcome is the result of an attempt to renew a lease.
type Outcome int

// Values of Outcome.
const (
	Over      Outcome = iota // the lease has ended, so it is no longer renewed
	Renewed                  // the attempt was applied, and Scheduler.Renewed has been called
	Silent                   // the attempt had no answer
	Throttled                // DynamoDB throttled the attempt
	Conflict                 // the attempt conflicted with another write of the record; that write has ended since
	Failed                   // any other failure
)

// place is the kind of slot that an attempt in flight occupies. Slots limit how many
// attempts are in flight at the same time.
type place int

const (
	none     place = iota // no slot: the attempt waits for another write of its own lock
	ordinary              // a slot for any lease
	unsure                // a slot for a doubtful lease; at most half of all slots are of this kind
	hanging               // no slot, as the attempt hangs, but the attempt counts as in flight
)

// line is a priority queue of leases. The function "before" reports whether lease a precedes
// lease b in the queue.
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

// first returns the lease at the head of the priority queue, or nil if the queue is empty.
func (n *line) first() *Lease {
	if len(n.leases) == 0 {
		return nil
	}
	return n.leases[0]
}

func (n *line) add(l *Lease) { heap.Push(n, l) }

// leaveLine removes the lease from its priority queue. It does nothing if the lease is in no
// queue.
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
