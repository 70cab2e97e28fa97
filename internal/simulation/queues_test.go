package simulation

import (
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// Clients wait in the queue of the record. Some die while they wait, and some leave the
// queue. A takeover erases the queue.
func TestSimulationOfQueues(t *testing.T) { forSeeds(t, worldSeeds, likewise(lines)) }

func lines(seed uint64) world {
	return world{shared: seed%5 == 0}
}

// A record contains hints about its queue: whether the key was handed over, until when the
// queue is suspended, and which clients wait. In this world the hints are wrong. No promise
// depends on them, so all promises hold.
func TestSimulationOfWrongQueueAdviceInRecord(t *testing.T) {
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
			s.history.enter("%s is advised wrongly by hand", key)
			s.w.Update(key, changes)
		}
		s.mu.Unlock()
	}
}
