package cli

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/layout"
)

const (
	readsPerLease   = 8               // of an observed record; its holder renews several times in that time
	maxReadInterval = 5 * time.Second // for any lease
	concurrentReads = 32
)

// observation is the result of observing a held record for its lease. If the
// record is no longer held, liveness is "" and record is the new one.
type observation struct {
	record    leasehold.Record
	liveness  liveness
	heartbeat heartbeat // shows the liveness
	gone      bool      // the record was deleted
	err       error
}

// observer finds out whether holders are live or dead.
type observer struct {
	locks    *leasehold.Client
	expiry   layout.Expiry
	late     time.Duration // WallClock layouts: how long after its expiry a record's holder is dead
	sessions *sessionReader
}

// newObserver returns an observer that judges records as a waiter would.
func newObserver(s *store, locks *leasehold.Client) (observer, error) {
	proto, err := records.Of(s.layout)
	if err != nil {
		return observer{}, err
	}
	caps := locks.Capabilities()
	return observer{locks, caps.Expiry, proto.Skew() + caps.LeaseStep, newSessionReader(s, proto)}, nil
}

// deadIn returns how long a record must still stay unchanged until its holder is
// dead, if it was first seen seenFor ago. The holder is dead after one lease by
// this process's monotonic clock; in layouts that store an expiry time, once that
// time has passed on every clock of the fleet.
func (o observer) deadIn(r leasehold.Record, seenFor time.Duration) time.Duration {
	if o.expiry == layout.WallClock {
		return time.Until(r.ExpiresAt.Add(o.late))
	}
	return r.Lease - seenFor
}

// observe reads each record until its version changes or its holder is dead. It
// observes all records at the same time.
func (o observer) observe(ctx context.Context, records []leasehold.Record) []observation {
	out := make([]observation, len(records))
	requests := make(chan struct{}, concurrentReads)
	var wg sync.WaitGroup
	for i, r := range records {
		wg.Go(func() { out[i] = o.observeOne(ctx, r, requests) })
	}
	wg.Wait()
	return out
}

func (o observer) observeOne(ctx context.Context, first leasehold.Record, requests chan struct{}) observation {
	if first.Released {
		return observation{record: first}
	}
	get := func() (leasehold.Record, error) {
		requests <- struct{}{}
		defer func() { <-requests }()
		return holder(ctx, o.locks, first.Key, func(r leasehold.Record) bool { return grantOf(r) == grantOf(first) })
	}
	var seen heartbeat
	var since time.Time
	var every time.Duration
	for {
		r, err := get()
		beat := heartbeat{lease: r.Lease, version: r.Version}
		if err == nil && !r.Released {
			beat, err = o.sessions.heartbeat(ctx, r)
		}
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
		case beat.dead:
			return observation{record: r, liveness: dead, heartbeat: beat}
		case since.IsZero():
			// The listed record may be old, so the lease counts from this read.
			seen, since = beat, now
		case beat.version != seen.version:
			return observation{record: r, liveness: live, heartbeat: beat}
		}
		left := o.deadIn(leasehold.Record{Lease: beat.lease, ExpiresAt: r.ExpiresAt}, now.Sub(since))
		if left <= 0 {
			return observation{record: r, liveness: dead, heartbeat: beat}
		}
		if every == 0 {
			every = min(left/readsPerLease, maxReadInterval)
		}
		if !sleep(ctx, min(every, left)) {
			return observation{record: r, err: context.Cause(ctx)}
		}
	}
}

// sleep waits for d. It returns false if ctx ended first.
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

// longest returns how long observing records takes at most.
func (o observer) longest(ctx context.Context, records []leasehold.Record) time.Duration {
	var longest time.Duration
	for _, r := range records {
		if r.Released {
			continue
		}
		if beat, err := o.sessions.heartbeat(ctx, r); err == nil {
			r.Lease = beat.lease
		}
		longest = max(longest, o.deadIn(r, 0))
	}
	return longest
}

func withSortKey(k leasehold.Key) []leasehold.GetOption {
	if k.Sort == "" {
		return nil
	}
	return []leasehold.GetOption{leasehold.WithSortKey(k.Sort)}
}

// observeWithProgress is observe with a message that says how long it may take.
func (a *app) observeWithProgress(ctx context.Context, o observer, records []leasehold.Record, what string) []observation {
	longest := o.longest(ctx, records)
	if longest == 0 {
		return o.observe(ctx, records)
	}
	if !a.say.rewrites() {
		a.say.text("observing %s for up to %s", what, age(longest+time.Second-1))
		return o.observe(ctx, records)
	}
	done := make(chan []observation)
	go func() { done <- o.observe(ctx, records) }()
	began := time.Now()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		a.say.rewrite("observing " + what + ", at most " + age(longest-time.Since(began)+time.Second-1) + " left")
		select {
		case out := <-done:
			a.say.clear()
			return out
		case <-tick.C:
		}
	}
}
