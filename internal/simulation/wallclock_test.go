package simulation

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/table"
)

// wallSkew is the skew that clients declare: the bound for the difference
// between their wall clocks.
const wallSkew = 300 * time.Millisecond

// This test simulates layouts whose records store an expiry time. A client may trust its lock until
// this time minus the declared skew. No two clients may trust one lock at once. Free locks, and
// locks of dead holders, must be granted in time.
func TestSimulationOfLayoutsThatStoreExpiryFindsNoViolation(t *testing.T) {
	forSeeds(t, worldSeeds, simulateByTheClock)
}

func simulateByTheClock(t *testing.T, seed uint64, plan world) {
	var by layout.Layout = layout.DyndbMutex{MaxSkew: wallSkew}
	step := time.Millisecond
	if seed%2 == 0 {
		by, step = layout.DynamoDLM{NoSlots: seed%4 == 0, MaxSkew: wallSkew}, time.Second
	}
	plan.config = func(cfg *leasehold.Config, _ *rand.Rand) {
		cfg.Table, cfg.Layout, cfg.DeleteOnRelease = "clocked", by, false
	}
	synctest.Test(t, func(t *testing.T) {
		s := newRun(t, seed, plan)
		s.clocked = true
		lab.OK(t, table.Create(t.Context(), s.w.DB, table.Spec{Name: "clocked", Layout: by}))
		rng := rand.New(rand.NewPCG(seed, 5))
		for id := range 2 + rng.IntN(2) {
			s.clients = append(s.clients, s.newClient(id, rng))
		}
		var wg sync.WaitGroup
		for _, c := range s.clients {
			for i := range 1 + rng.IntN(2) {
				r := newWorker(seed, c.id, i)
				wg.Go(func() { c.work(r, c.sectionByTheClock) })
			}
		}
		s.mend(faultsLast, &wg)
		time.Sleep(14 * time.Second) // the network delivers the last copies of requests in this time
		late := s.newClient(lastClient, rng)
		for _, key := range keyNames {
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			lock, err := late.client.Acquire(ctx, key)
			cancel()
			if most := usualLease + wallSkew + step + 2*time.Second + 100*time.Millisecond; err != nil || time.Since(began) > most {
				s.violated("12: %s was granted after %v (at most %v): %v", key, time.Since(began), most, err)
			}
			if err == nil {
				s.believes(late, lock)
				_ = lock.Release(late.asks(t.Context(), "release"))
			}
		}
		s.closeAll()
		s.end(t)
	})
}

// The wall clocks of the processes differ by almost the skew that the clients declare. The
// test checks all promises of docs/guarantees.md.
func TestSimulationOfSkewedClocksFindsNoViolation(t *testing.T) {
	forSeeds(t, worldSeeds, skewedBy(wallSkew*9/10))
}

// skewedBy returns a simulation of layouts with an expiry time. The wall clocks of the
// processes differ by at most the given skew.
func skewedBy(skew time.Duration) simulation {
	return func(t *testing.T, seed uint64, watched world) {
		watched.skew = skew
		simulateByTheClock(t, seed, watched)
	}
}

// mostSkew is an upper bound of the difference between two wall clocks that rightWall sets. It does
// not apply to worlds with the function world.wall, or to layouts with an expiry time (see
// world.skew).
const mostSkew = 100 * time.Millisecond

// rightWall returns a random difference between a wall clock and the true time. The difference is
// within the skew of the world.
func (c *process) rightWall(rng *rand.Rand) time.Duration {
	if c.plan.wall != nil {
		return c.plan.wall(c, rng).Truncate(time.Millisecond)
	}
	skew := c.plan.skew
	if !c.clocked {
		skew = mostSkew * 9 / 10
	}
	if skew == 0 || c.id == lastClient {
		return 0
	}
	return upTo(rng, skew).Truncate(time.Millisecond) - skew/2
}

// setWall sets the wall clock of the process to a random time within the skew of the world. In
// layouts without an expiry time, it sometimes sets a time that is wrong by up to ten seconds, or
// by up to a day.
func (c *process) setWall(r *worker) {
	ahead := c.rightWall(r.Rand)
	if !c.clocked && c.plan.wall == nil && r.IntN(2) == 0 {
		most := []time.Duration{10 * time.Second, 24 * time.Hour}[r.IntN(2)]
		ahead = upTo(r, 2*most) - most
	}
	if ahead != c.clocks.wallAhead() && c.happens(wallSet, r.trouble()) {
		c.clocks.setWall(ahead)
	}
}

// In this world the layouts have no expiry time, and wall clocks are set while processes run.
// Some calls use these clocks to find whether a holder appears dead. The test checks all
// promises of docs/guarantees.md.
func TestSimulationOfWallClockChangesFindsNoViolation(t *testing.T) {
	forSeeds(t, worldSeeds, likewise(wallClocksAreSet))
}

func wallClocksAreSet(_ uint64) world {
	return world{work: (*process).sectionWithSetWall}
}

func (c *process) sectionWithSetWall(r *worker) {
	if r.IntN(3) == 0 {
		c.setWall(r)
	} else {
		c.section(r)
	}
}

// sectionByTheClock acquires a lock, holds it for a while and releases it. It
// sometimes calls Renew before the release.
func (c *process) sectionByTheClock(r *worker) {
	ctx, cancel := context.WithTimeout(r.ctx(), upTo(r, 12*time.Second))
	defer cancel()
	what, opts := "acquire", []leasehold.AcquireOption(nil)
	if r.IntN(4) == 0 {
		opts, what = append(opts, leasehold.NoWait()), "try"
	}
	lock := c.acquires(ctx, what, keyNames[r.IntN(len(keyNames))], opts...)
	if lock == nil || c.isDead() {
		return
	}
	c.rest(r, 6000)
	if r.IntN(3) == 0 {
		_ = lock.Renew(c.asks(ctx, "renew"), leasehold.WithLease(2*time.Second+upTo(r, 3*time.Second).Truncate(time.Millisecond)))
		c.rest(r, 3000)
	}
	_, began := c.clocks.read()
	err := lock.Release(c.asks(ctx, "release"))
	_, ended := c.clocks.read()
	switch {
	case err == nil:
		c.releasedForGood(lock)
	case errors.Is(err, leasehold.ErrLost), errors.Is(err, leasehold.ErrUnknownOutcome), ctx.Err() != nil:
	// A client repeats a failed release only until the lease has expired. So any error is allowed
	// if the lease expired during this call, which happens if the machine was suspended.
	case ended-began >= lock.Record().Lease:
	default:
		c.violated("0: Release failed: %v", err)
	}
}

// changesByTheClock stores in c.trusts the time until which the sender of a request may trust its
// grant. This is the expiry time that the request has stored, minus wallSkew. The caller must hold
// c.mu.
func (c *checker) changesByTheClock(r *request, res *http.Response) {
	item := attributes(res)
	if r.Op != "UpdateItem" || item == nil {
		return
	}
	expires := time.Unix(item.number("expires"), 0)
	if item["expire_ts"] != nil {
		expires = time.UnixMilli(item.number("expire_ts"))
	}
	grant := item.text("grantId")
	c.history.enter("process %d, sent at %v: grant %s until %v", r.by.id, r.at.Sub(c.began), grant, expires.Sub(c.began))
	if until := expires.Add(-wallSkew); until.After(c.trusts[grant]) {
		c.trusts[grant] = until
	}
}
