package layouttest

import (
	"sync"
	"sync/atomic"

	"github.com/leasehold-go/leasehold"
)

func contentionChecks() []check {
	return []check{
		{claim: "only one of a hundred goroutines holds the key at a time", hold: hundredGoroutines},
	}
}

func hundredGoroutines(e *env) {
	const each = 50
	a, _ := e.client()
	b, _ := e.client()
	var inside atomic.Int32
	// Nothing but the lock under test guards the variable "last". So the race detector reports a
	// data race if two clients hold the key at the same time.
	var last int64
	var done sync.WaitGroup
	ctx := e.within(patience)
	for _, c := range []*leasehold.Client{a, b} {
		for range each {
			done.Go(func() {
				lock, err := c.Acquire(ctx, e.key)
				if err != nil {
					e.Error(err)
					return
				}
				if inside.Add(1) != 1 {
					e.Error("two goroutines hold the key")
				}
				// In layouts that delete records on release, a client computes the token of a grant
				// when it builds the request, from its clock. So a request that is delayed
				// afterwards may have a lower token than the previous grant.
				if lock.Token() <= last && e.caps().KeepOnRelease {
					e.Errorf("token %d after %d", lock.Token(), last)
				}
				last = lock.Token()
				inside.Add(-1)
				if err := lock.Release(ctx); err != nil {
					e.Error(err)
				}
			})
		}
	}
	done.Wait()
	if item := e.item(); !e.isFree(item) {
		e.Errorf("left held: %v", describe(item))
	}
}
