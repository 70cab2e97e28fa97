package simulation

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/rwlock"
)

func TestSimulationOfReadWriteLocks(t *testing.T) {
	forSeeds(t, recipeSeeds, simulateReadWrite)
}

// simulateReadWrite is simulate for processes that read and write.
func simulateReadWrite(t *testing.T, seed uint64, plan world) {
	synctest.Test(t, func(t *testing.T) {
		s := newRun(t, seed, plan)
		rng := rand.New(rand.NewPCG(seed, 1))
		var clients []*process
		var wg sync.WaitGroup
		for id := range 2 + rng.IntN(3) {
			c := s.newClient(id, rng)
			clients = append(clients, c)
			for i := range 1 + rng.IntN(3) {
				r := newWorker(seed, c.id, i)
				wg.Go(func() { c.work(r, c.readOrWrite) })
			}
		}
		s.deletes = false // these rows are not deleted
		time.Sleep(faultsLast)
		close(s.quit)
		wg.Wait()
		time.Sleep(6 * time.Second) // what was delayed arrives
		s.checkReadWriteLiveness(t, seed)
		for _, c := range clients {
			_ = c.client.Close(context.Background())
		}
		time.Sleep(20 * time.Second) // late duplicates arrive
		s.finish()
		s.report(t, seed)
	})
}

// readOrWrite is one grant, from its asking to its end.
func (c *process) readOrWrite(r *worker) {
	ctx, cancel := context.WithTimeout(r.ctx(), upTo(r, 12*time.Second))
	defer cancel()
	keys := keyNames
	if c.plan.rows != nil {
		keys = c.plan.rows
	}
	key := keys[r.IntN(len(keys))]
	l, err := rwlock.New(c.client, key)
	if err != nil {
		c.violated("0: %v", err)
		return
	}
	what, opts := "acquire", []leasehold.AcquireOption(nil)
	if r.IntN(4) == 0 {
		opts, what = append(opts, c.try()), "try"
	}
	if r.IntN(5) == 0 {
		opts = append(opts, leasehold.WithoutRenewal())
	}
	var lock *leasehold.Lock
	if r.IntN(3) == 0 {
		asked, over := c.operation(ctx, what+" to write")
		lock, err = l.AcquireWrite(asked, opts...)
		over()
		if err == nil {
			c.believes(c, lock)
		}
	} else {
		asked, over := c.operation(ctx, what+" to read")
		lock, err = l.AcquireRead(asked, opts...)
		over()
		if err == nil {
			c.believesToRead(c, lock)
		}
	}
	if err != nil || c.isDead() {
		return
	}
	for range r.IntN(3) {
		c.rest(r, 3000)
		switch r.IntN(5) {
		case 0:
			_ = lock.Renew(c.asks(ctx, "renew"))
		case 1:
			_ = lock.Renew(c.asks(ctx, "renew"), leasehold.WithLease(time.Second+upTo(r, 3*time.Second).Truncate(time.Millisecond)))
		default:
			call, value := c.begin(lock)
			limited, cancel := context.WithTimeout(ctx, upTo(r, 6*time.Second))
			c.end(call, lock.Commit(c.asks(limited, "commit"), lab.Writes(lab.Note(key, value))))
			cancel()
			c.rest(r, 5) // a renewal that has waited for the commit goes first, in every run
		}
	}
	if c.isDead() {
		return
	}
	ctx, cancel = context.WithTimeout(r.ctx(), upTo(r, 4*time.Second))
	defer cancel()
	if r.IntN(4) == 0 {
		call, value := c.begin(lock)
		err = lock.CommitAndRelease(c.asks(ctx, "commit and release"), lab.Writes(lab.Note(key, value)))
		c.end(call, err)
	} else {
		err = lock.Release(c.asks(ctx, "release"))
	}
	if err == nil {
		c.rowReleased(lock)
	}
}

// checkReadWriteLiveness asks for every key once the faults have stopped: for
// writing first, so that all that is left behind has to be dead.
func (s *run) checkReadWriteLiveness(t *testing.T, seed uint64) {
	late := s.newClient(lastClient, rand.New(rand.NewPCG(seed, lastClient)))
	s.deletes = false
	most := time.Duration(float64(usualLease)/late.rate) + 2*time.Second + 500*time.Millisecond
	for _, key := range keyNames {
		l, err := rwlock.New(late.client, key)
		if err != nil {
			t.Fatal(err)
		}
		for _, write := range []bool{true, false} {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			acquire, believes := l.AcquireRead, s.believesToRead
			if write {
				acquire, believes = l.AcquireWrite, s.believes
			}
			began := time.Now()
			lock, err := acquire(ctx)
			cancel()
			if took := time.Since(began); err != nil || took > most {
				s.violated("12: %s was granted (to write: %v) after %v (at most %v): %v", key, write, took, most, err)
				continue
			}
			believes(late, lock)
			if err := lock.Release(late.asks(context.Background(), "release")); err != nil && !errors.Is(err, leasehold.ErrLost) {
				s.violated("12: release with no fault: %v", err)
			}
			most = 2*time.Second + 500*time.Millisecond // nobody is left
		}
		most = time.Duration(float64(usualLease)/late.rate) + 2*time.Second + 500*time.Millisecond
	}
	_ = late.client.Close(context.Background())
}
