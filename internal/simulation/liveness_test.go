package simulation

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
)

// stale returns the greatest age of a reading of a session's row on which a waiter still
// relies.
func (s *run) stale() time.Duration {
	if s.plan.shared {
		return time.Second
	}
	return 0
}

// lastArrival returns the last time at which some write affected how long the key is held:
// it changed the key's record or renewed a session. Such a write may be a late copy of a
// request. If the last such time is before from, lastArrival returns from.
func (s *run) lastArrival(key string, from time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	for of, at := range s.arrived {
		if (of == key || strings.HasPrefix(of, "session ")) && at.After(from) {
			from = at
		}
	}
	return from
}

// checkLiveness acquires every key after the faults have stopped. Invariant 12 of
// docs/guarantees.md limits the time until each key is granted.
func (s *run) checkLiveness(t *testing.T, seed uint64) {
	late := s.newClient(lastClient, rand.New(rand.NewPCG(seed, lastClient)))
	for _, key := range keyNames {
		// By now, the workers of live processes have released their locks and returned.
		// Locks of dead processes, and locks that a process gave up without a release,
		// become free when their lease ends.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		began := time.Now()
		asked, over := late.operation(ctx, "acquire")
		lock, err := late.client.Acquire(asked, key)
		over()
		cancel()
		took := time.Since(s.lastArrival(key, began))
		// The limit is a lease by the waiter's clock, two longest polls and a round trip.
		if most := time.Duration(float64(s.longest)/late.rate) + 2*time.Second + 100*time.Millisecond + s.stale(); err != nil || took > most {
			s.violated("12: %s was granted after %v (at most %v): %v", key, took, most, err)
		}
		if err == nil {
			s.believes(late, lock)
			if err := lock.Release(late.asks(context.Background(), "release")); err != nil && !errors.Is(err, leasehold.ErrLost) {
				s.violated("12: release with no fault: %v", err)
			}
		}
	}
	_ = late.client.Close(context.Background())
}
