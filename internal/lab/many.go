package lab

import (
	"fmt"
	"time"

	"github.com/leasehold-go/leasehold"
)

// Crowd returns a number of locks far above 128, the largest number of renewals in flight.
// It returns fewer under the race detector, which makes tests take ten times as long.
func Crowd() int {
	if Race {
		return 300
	}
	return 1000
}

// AcquireMany acquires n locks with keys of the given prefix.
func (w *World) AcquireMany(c *leasehold.Client, prefix string, n int, opts ...leasehold.AcquireOption) []*leasehold.Lock {
	w.T.Helper()
	locks := make([]*leasehold.Lock, n)
	for i := range locks {
		locks[i] = w.Acquire(c, fmt.Sprintf("%s/%d", prefix, i), opts...)
	}
	return locks
}

// LeavesHeld makes a process acquire keys and then disconnects it, as if it had died. It
// returns once the process has been dead for the duration ago.
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

// Lost returns the number of locks that are no longer trusted.
func Lost(locks []*leasehold.Lock) int {
	n := 0
	for _, l := range locks {
		if l.Err() != nil {
			n++
		}
	}
	return n
}

// ManyKeys returns n keys in reverse order.
func ManyKeys(n int) []leasehold.Key {
	var keys []leasehold.Key
	for i := range n {
		keys = append(keys, leasehold.Key{Partition: fmt.Sprintf("key-%03d", n-i)})
	}
	return keys
}
