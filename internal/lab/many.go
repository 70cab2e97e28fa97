package lab

import (
	"fmt"
	"runtime"
	"time"

	"github.com/leasehold-go/leasehold"
)

// Crowd returns a number of locks that is much larger than 128, the limit of renewals in
// flight. The number is smaller in a quick run (IsQuick).
func Crowd() int { return Cases(1000, 300) }

// AcquireMany acquires n locks whose keys have the given prefix.
func (w *World) AcquireMany(c *leasehold.Client, prefix string, n int, opts ...leasehold.AcquireOption) []*leasehold.Lock {
	w.T.Helper()
	locks := make([]*leasehold.Lock, n)
	for i := range locks {
		locks[i] = w.Acquire(c, fmt.Sprintf("%s/%d", prefix, i), opts...)
	}
	return locks
}

// LeavesHeld acquires keys with a new client, and then cuts the client off from the network, as if
// its process had died. Then LeavesHeld lets the duration "ago" pass, and returns the locks.
func (w *World) LeavesHeld(cfg leasehold.Config, ago time.Duration, keys ...string) []*leasehold.Lock {
	w.T.Helper()
	c, wire := w.Client(cfg)
	var locks []*leasehold.Lock
	for _, key := range keys {
		locks = append(locks, w.Acquire(c, key))
	}
	wire.SetFault(Cut)
	Elapse(ago)
	return locks
}

// Lost returns how many of the locks are no longer trusted.
func Lost(locks []*leasehold.Lock) int {
	n := 0
	for _, l := range locks {
		if l.Err() != nil {
			n++
		}
	}
	return n
}

// ManyKeys returns n different keys in descending order.
func ManyKeys(n int) []leasehold.Key {
	var keys []leasehold.Key
	for i := range n {
		keys = append(keys, leasehold.Key{Partition: fmt.Sprintf("key-%03d", n-i)})
	}
	return keys
}

// Heap returns the memory in bytes that reachable objects of this process use, without the stacks of
// its goroutines.
func Heap() int {
	runtime.GC()
	runtime.GC() // the first collection runs finalizers; the second frees the finalized objects
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
