package cli

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold"
)

const (
	looksPerLease   = 8               // while a record is observed; holders renew four times
	longestLookAway = 5 * time.Second // whatever the lease
	observeAtATime  = 32              // requests
)

// observation is what observing a held record for its lease has shown. A
// record that is not held any more has the liveness "" and its new state.
type observation struct {
	record leasehold.Record
	found  liveness
	gone   bool // there is no record any more
	err    error
}

// observe looks at each record until its version changes or its lease has
// passed, by this process's monotonic clock: all at the same time.
func observe(ctx context.Context, locks *leasehold.Client, records []leasehold.Record) []observation {
	out := make([]observation, len(records))
	requests := make(chan struct{}, observeAtATime)
	var wg sync.WaitGroup
	for i, r := range records {
		wg.Go(func() { out[i] = observeOne(ctx, locks, r, requests) })
	}
	wg.Wait()
	return out
}

func observeOne(ctx context.Context, locks *leasehold.Client, first leasehold.Record, requests chan struct{}) observation {
	if first.Released {
		return observation{record: first}
	}
	get := func() (leasehold.Record, error) {
		requests <- struct{}{}
		defer func() { <-requests }()
		return locks.Get(ctx, first.Key.Partition, withSortKey(first.Key)...)
	}
	var seen leasehold.Record
	var since time.Time
	for {
		r, err := get()
		now := time.Now()
		switch {
		case errors.Is(err, leasehold.ErrNotFound):
			return observation{record: first, gone: true}
		case err != nil:
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return observation{record: first, err: err}
		case r.Released:
			return observation{record: r}
		case since.IsZero():
			// What a listing showed may be old: the lease counts from here.
			seen, since = r, now
		case r.Version != seen.Version:
			return observation{record: r, found: live}
		case now.Sub(since) >= r.Lease:
			return observation{record: r, found: dead}
		}
		if !sleep(ctx, min(seen.Lease/looksPerLease, longestLookAway, seen.Lease-now.Sub(since))) {
			return observation{record: r, err: context.Cause(ctx)}
		}
	}
}

// sleep waits for d; false: ctx has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// longestLease is how long observing records takes at most.
func longestLease(records []leasehold.Record) time.Duration {
	var longest time.Duration
	for _, r := range records {
		if !r.Released {
			longest = max(longest, r.Lease)
		}
	}
	return longest
}

func withSortKey(k leasehold.Key) []leasehold.GetOption {
	if k.Sort == "" {
		return nil
	}
	return []leasehold.GetOption{leasehold.WithSortKey(k.Sort)}
}

// observeAloud is observe with a line that says what takes so long.
func (a *app) observeAloud(ctx context.Context, locks *leasehold.Client, records []leasehold.Record, what string) []observation {
	longest := longestLease(records)
	if longest == 0 {
		return observe(ctx, locks, records)
	}
	if !a.say.rewrites() {
		a.say.text("observing %s for up to %s", what, age(longest))
		return observe(ctx, locks, records)
	}
	done := make(chan []observation)
	go func() { done <- observe(ctx, locks, records) }()
	began := time.Now()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		a.say.rewrite("observing " + what + ", " + age(longest-time.Since(began)+time.Second-1) + " to go at most")
		select {
		case out := <-done:
			a.say.clear()
			return out
		case <-tick.C:
		}
	}
}
