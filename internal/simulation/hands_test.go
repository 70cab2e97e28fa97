package simulation

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// operator is the id of who breaks locks.
const operator = 50

// An operator breaks locks, whoever holds them, one of several for one. That
// gives up promise 2 of the grants that were broken; what is fenced is as safe as
// ever.
func TestSimulationOfBreaking(t *testing.T) { forSeeds(t, worldSeeds, likewise(breaking)) }

func breaking(seed uint64) world {
	plan := world{beside: breakLocks}
	if seed%2 == 0 {
		plan.work = (*process).sectionOfGroups
	}
	return plan
}

func breakLocks(t *testing.T, s *run, r *worker) {
	c := s.newClient(operator, r.Rand)
	defer func() { _ = c.client.Close(context.Background()) }()
	for s.goesOn() {
		c.rest(r, 3000)
		ctx, cancel := context.WithTimeout(r.ctx(), upTo(r, 4*time.Second))
		if record, err := c.client.Get(c.asks(ctx, "get"), keyNames[r.IntN(len(keyNames))]); err == nil && !record.Released && s.happens(broke, r.trouble()) {
			_ = c.client.Break(c.asks(ctx, "break"), record)
		}
		cancel()
	}
}

// Records are deleted: by hand whatever they show, which gives up promise 2 of
// that grant, and by TTL once they are released and their time has come. Both
// give up the order of tokens against copies of old requests, and nothing else.
func TestSimulationOfDeletion(t *testing.T) { forSeeds(t, worldSeeds, likewise(deletion)) }

func deletion(_ uint64) world {
	return world{config: shortRetention, beside: deleteRecords}
}

func deleteRecords(_ *testing.T, s *run, r *worker) {
	s.mu.Lock()
	s.deletes = true
	s.mu.Unlock()
	for s.goesOn() {
		time.Sleep(upTo(r, 2*time.Second))
		s.mu.Lock()
		key := keyNames[r.IntN(len(keyNames))]
		before, item := s.records[key], attributesOf(s.w.Item(key))
		due := item["expiresAt"] != nil && time.Unix(item.number("expiresAt"), 0).Before(time.Now())
		byHand, what := r.IntN(6) == 0, collected
		if byHand && !due {
			what = deleted
		}
		if to := r.trouble(); before != nil && (due || byHand) && s.happensTo(what, to) {
			if !before.released {
				s.broken[before.grant], s.deleted[before.grant] = true, true
			}
			s.history.enter("%s is deleted, by hand: %v", key, byHand)
			s.deleteNow(key)
			delete(s.records, key)
		}
		s.mu.Unlock()
	}
}

// deleteNow deletes a record, at the instant of the look at it.
func (s *run) deleteNow(key string) {
	_, err := s.w.DB.DeleteItem(context.Background(), &dynamodb.DeleteItemInput{TableName: aws.String("locks"), Key: lab.Key(key)})
	if err != nil {
		s.note("0: %v", err)
	}
}

// goesOn reports whether the network still has faults.
func (s *run) goesOn() bool {
	select {
	case <-s.quit:
		return false
	default:
		return true
	}
}
