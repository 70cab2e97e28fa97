package simulation

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// operator is the id of the process that acts as an operator and breaks locks.
const operator = 50

// An operator breaks locks while they are held. In half of the seeds, some of the locks belong to a
// group. For broken grants, promise 2 of docs/guarantees.md (the holder stops first) does not hold:
// the next client may acquire the key before the holder stops. Fenced writes stay safe.
func TestSimulationOfBreakingHeldLocksFindsNoViolation(t *testing.T) {
	forSeeds(t, worldSeeds, likewise(breaking))
}

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
			if c.client.Break(c.asks(ctx, "break"), record, leasehold.BreakOptions{}) == nil {
				s.brokeAndTold(record.Grant)
			}
		}
		cancel()
	}
}

// An operator breaks locks that are under shared leases. Without the break, the holders would keep
// these locks until long after the faults have stopped. Each holder learns of the break through the
// row of its session. For broken grants, promise 2 of docs/guarantees.md (the holder stops first)
// does not hold.
func TestSimulationOfBreaksUnderSharedLeasesFindsNoViolation(t *testing.T) {
	forSeeds(t, worldSeeds, likewise(breakingShared))
}

func breakingShared(_ uint64) world {
	return world{shared: true, keeps: true, beside: breakLocks, work: (*process).sectionHeldForLong, noticedWithin: 2 * usualLease}
}

// heldFor is the time for which processes hold their locks after the faults have stopped.
const heldFor = time.Minute

// sectionHeldForLong acquires a lock and holds it until the lock is lost, or until heldFor
// has passed after the end of the faults.
func (c *process) sectionHeldForLong(r *worker) {
	ctx, cancel := context.WithTimeout(r.ctx(), upTo(r, 12*time.Second))
	defer cancel()
	lock := c.acquires(ctx, "acquire", keyNames[r.IntN(len(keyNames))])
	if lock == nil {
		return
	}
	select {
	case <-lock.Context().Done():
	case <-time.After(faultsLast + heldFor - time.Since(c.began)):
	}
	if !c.isDead() {
		_ = lock.Release(c.asks(r.ctx(), "release"))
	}
}

// brokeAndTold is called when a Break of the grant has returned nil. It stores the current time.
func (c *checker) brokeAndTold(grant string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.brokenAt[grant] = time.Now()
}

// checkHearing checks that a process stopped trusting a broken grant within c.noticedWithin. This
// time begins at the break or at the end of the faults, whichever is later. The caller must hold
// c.mu.
func (c *checker) checkHearing(b *belief) {
	told, broken := c.brokenAt[b.grant]
	if !broken || c.noticedWithin == 0 {
		return
	}
	if mended := c.began.Add(faultsLast); told.Before(mended) {
		told = mended
	}
	if late := b.end.Sub(told); late > c.noticedWithin {
		c.note("16: process %d trusted grant %s for %v after its break and the end of the faults", b.by.id, b.grant, late)
	}
}

// An operator deletes records by hand, and TTL deletes expired ones. For a grant whose record was
// deleted by hand, promise 2 of docs/guarantees.md (the holder stops first) does not hold. After a
// deletion, a late copy of a request may break the order of tokens. The test checks all other
// promises.
func TestSimulationOfDeletedRecordsFindsNoViolation(t *testing.T) {
	forSeeds(t, worldSeeds, likewise(deletion))
}

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
			s.history.enter("%s is deleted; by hand: %v", key, byHand)
			s.deleteNow(key)
			delete(s.records, key)
		}
		s.mu.Unlock()
	}
}

// deleteNow deletes a record while no simulated time passes. So the record cannot change between
// the caller's read and the deletion.
func (s *run) deleteNow(key string) {
	_, err := s.w.DB.DeleteItem(context.Background(), &dynamodb.DeleteItemInput{TableName: aws.String("locks"), Key: lab.Key(key)})
	if err != nil {
		s.note("0: %v", err)
	}
}

// An operator makes the lease in a row of a lock or of a session unreadable, and repairs the row up
// to six seconds later. Meanwhile the holder must not count as dead. The test checks all promises
// of docs/guarantees.md.
func TestSimulationOfDamagedRecordsFindsNoViolation(t *testing.T) {
	forSeeds(t, worldSeeds, likewise(damage))
}

func damage(seed uint64) world { return world{beside: damageRows, shared: seed%2 == 0} }

// unreadable is a value of the lease attribute that no layout can read.
const unreadable = "soon"

func damageRows(_ *testing.T, s *run, r *worker) {
	for s.goesOn() {
		time.Sleep(upTo(r, time.Second))
		key, ofSession := keyNames[r.IntN(len(keyNames))], r.IntN(2) == 0
		s.mu.Lock()
		if shown := s.records[key]; ofSession && shown != nil && shown.session != "" {
			key = "leasehold/session/" + shown.session
		}
		lease := s.w.Item(key)["leaseDuration"]
		to := r.trouble()
		hurt := lease != nil && s.happensTo(spoiled, to)
		if hurt {
			s.history.enter("%s is damaged by hand", key)
			s.w.Update(key, map[string]types.AttributeValue{"leaseDuration": lab.Str(unreadable)})
			s.spoils[key] = lease
		}
		s.mu.Unlock()
		time.Sleep(upTo(r, 6*time.Second))
		s.mu.Lock()
		if lease := s.spoils[key]; hurt && lease != nil {
			s.history.enter("%s is repaired, unless it has changed", key)
			delete(s.spoils, key)
			if attributesOf(s.w.Item(key)).text("leaseDuration") == unreadable {
				s.w.Update(key, map[string]types.AttributeValue{"leaseDuration": lease})
			}
		}
		s.mu.Unlock()
	}
}

// mended returns an item as it was before its lease was damaged by hand. It returns any other
// item unchanged. The caller must hold c.mu.
func (c *checker) mended(key string, item attributeMap) attributeMap {
	if lease := c.spoils[key]; lease != nil && item.text("leaseDuration") == unreadable {
		item["leaseDuration"] = attributesOf(map[string]types.AttributeValue{"is": lease})["is"]
	}
	return item
}

// goesOn reports whether the run is still in the phase in which faults happen.
func (s *run) goesOn() bool {
	select {
	case <-s.quit:
		return false
	default:
		return true
	}
}
