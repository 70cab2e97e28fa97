package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestSimulationOfLocksFindsNoViolation(t *testing.T) {
	forSeeds(t, lockSeeds, simulate)
}

func TestSimulationOfSharedLeasesFindsNoViolation(t *testing.T) {
	forSeeds(t, lockSeeds/4, likewise(sharedLeases))
}

func sharedLeases(_ uint64) world { return world{shared: true} }

// section acquires a lock, works under it, and then releases it. The lock stays unreleased if
// the process dies, or if the process detaches the grant and cannot resume it.
func (c *process) section(r *worker) {
	ctx, cancel := context.WithTimeout(r.ctx(), upTo(r, 12*time.Second))
	defer cancel()
	what, opts := "acquire", []leasehold.AcquireOption(nil)
	if r.IntN(4) == 0 {
		opts, what = append(opts, c.try()), "try"
	}
	if r.IntN(5) == 0 && !c.shared {
		opts = append(opts, leasehold.WithoutRenewal())
	}
	if r.IntN(6) == 0 {
		opts = append(opts, leasehold.WithAttributes(map[string]types.AttributeValue{"by": lab.Str(fmt.Sprint(c.id))}))
	}
	lock := c.acquires(ctx, what, keyNames[r.IntN(len(keyNames))], opts...)
	if lock == nil || c.isDead() {
		return
	}
	for range r.IntN(3) {
		c.rest(r, 3000)
		change := r.IntN(7)
		if c.shared && change == 2 { // the client refuses to detach a lock that is under a shared lease
			change = 0
		}
		switch change {
		case 4, 5, 6:
			c.commit(r, lock, 6*time.Second)
		case 0:
			_ = lock.Renew(c.asks(ctx, "renew"), leasehold.WithData([]byte("x")))
		case 1:
			_ = lock.Renew(c.asks(ctx, "renew"), leasehold.WithLease(time.Second+upTo(r, 3*time.Second).Truncate(time.Millisecond)))
		case 2:
			if lock.Err() != nil {
				break
			}
			if g, err := lock.Detach(); err == nil {
				asked, over := c.operation(ctx, "resume")
				resumed, err := c.client.Resume(asked, g)
				over()
				if err != nil {
					return
				}
				lock = resumed
				c.believes(c, lock)
			}
		}
	}
	if c.isDead() {
		return
	}
	if r.IntN(3) == 0 {
		c.commit(r, lock, time.Second) // this call may return while the commit is still in flight
	}
	ctx, cancel = context.WithTimeout(r.ctx(), upTo(r, 4*time.Second))
	defer cancel()
	var err error
	if r.IntN(4) == 0 {
		call, value := c.begin(lock)
		err = lock.CommitAndRelease(c.asks(ctx, "commit and release"), lab.Writes(lab.Note(lock.Key().Partition, value)))
		c.end(call, err)
	} else {
		err = lock.Release(c.asks(ctx, "release"))
	}
	if err == nil {
		c.releasedForGood(lock)
	}
}

// Clients wait in the queue of a key's record. Some die while they wait, and some leave the
// queue. A client that takes the key over from a dead holder erases the queue.
func TestSimulationOfQueuesFindsNoViolation(t *testing.T) { forSeeds(t, worldSeeds, likewise(lines)) }

func lines(seed uint64) world {
	return world{shared: seed%5 == 0}
}

// A record contains hints about its queue: whether the key was handed over, how long the queue is
// suspended, and which clients wait. In this world the hints are wrong, but all promises of
// docs/guarantees.md must still hold.
func TestSimulationOfWrongQueueDataInRecordsFindsNoViolation(t *testing.T) {
	forSeeds(t, worldSeeds, likewise(wrongAdvice))
}

func wrongAdvice(seed uint64) world {
	w := lines(seed)
	w.beside = adviseWrongly
	return w
}

func adviseWrongly(_ *testing.T, s *run, r *worker) {
	for s.goesOn() {
		time.Sleep(upTo(r, time.Second))
		key := keyNames[r.IntN(len(keyNames))]
		changes := map[string]types.AttributeValue{}
		switch r.IntN(4) {
		case 0:
			changes["handed"] = lab.Str("1")
		case 1:
			changes["handed"] = nil
		// Suspend the queue until some time: in the past, in the near future, or so far in the
		// future that no client accepts it.
		case 2:
			until := time.Now().Add(upTo(r, 9*usualLease) - usualLease)
			changes["noQueueUntil"] = &types.AttributeValueMemberN{Value: strconv.FormatInt(until.UnixMilli(), 10)}
		case 3:
			changes["waiters"] = nil
		}
		s.mu.Lock()
		if to := r.trouble(); s.records[key] != nil && s.happensTo(misled, to) {
			s.history.enter("%s gets a wrong queue hint by hand", key)
			s.w.Update(key, changes)
		}
		s.mu.Unlock()
	}
}

// stale returns how long the client of checkLiveness may use an earlier read of a session's row.
// Without shared leases, it returns zero.
func (s *run) stale() time.Duration {
	if s.plan.shared {
		return time.Second
	}
	return 0
}

// lastArrival returns the time of the last write to the key's record or to the row of a session.
// Late copies of requests count, too. If there was no such write after "from", it returns "from".
func (s *run) lastArrival(key string, from time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	for of, at := range s.lastWritten {
		if (of == key || strings.HasPrefix(of, "session ")) && at.After(from) {
			from = at
		}
	}
	return from
}

// checkLiveness acquires every key after the faults have stopped. It reports a violation if
// this takes longer than invariant 12 of docs/guarantees.md allows.
func (s *run) checkLiveness(t *testing.T, seed uint64) {
	late := s.newClient(lastClient, rand.New(rand.NewPCG(seed, lastClient)))
	for _, key := range keyNames {
		// By now, the workers of live processes have released their locks and returned. All other
		// locks become free when their lease expires.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		began := time.Now()
		asked, over := late.operation(ctx, "acquire")
		lock, err := late.client.Acquire(asked, key)
		over()
		cancel()
		took := time.Since(s.lastArrival(key, began))
		// The limit is a lease by the waiter's clock, twice the longest pause between polls, 100 ms
		// for a round trip, and s.stale().
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
