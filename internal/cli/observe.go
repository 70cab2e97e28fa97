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
	looksPerLease   = 8               // while a record is observed; holders renew several times
	longestLookAway = 5 * time.Second // whatever the lease
	observeAtATime  = 32              // requests
)

// observation is what observing a held record for its lease has shown. A
// record that is not held any more has the liveness "" and its new state.
type observation struct {
	record leasehold.Record
	found  liveness
	by     watched // by what that was found
	gone   bool    // there is no record any more
	err    error
}

// observer tells live holders from dead ones.
type observer struct {
	locks    *leasehold.Client
	expiry   layout.Expiry
	late     time.Duration // after its expiry a holder that goes by the wall clock is dead
	sessions *sessionReader
}

// newObserver observes records of the store as a waiter would.
func newObserver(s *store, locks *leasehold.Client) (observer, error) {
	proto, err := records.Of(s.layout)
	if err != nil {
		return observer{}, err
	}
	caps := locks.Capabilities()
	return observer{locks, caps.Expiry, proto.Skew() + caps.LeaseStep, newSessionReader(s, proto)}, nil
}

// deadIn is when the holder of a held record is dead that stays as it is and
// was first seen so long ago: once its lease has passed by this process's
// monotonic clock or, where records say when they expire, once that time has
// passed by every clock of the fleet.
func (o observer) deadIn(r leasehold.Record, seenFor time.Duration) time.Duration {
	if o.expiry == layout.WallClock {
		return time.Until(r.ExpiresAt.Add(o.late))
	}
	return r.Lease - seenFor
}

// observe looks at each record until its version changes or its holder is dead:
// all at the same time.
func (o observer) observe(ctx context.Context, records []leasehold.Record) []observation {
	out := make([]observation, len(records))
	requests := make(chan struct{}, observeAtATime)
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
	var seen watched
	var since time.Time
	var every time.Duration
	for {
		r, err := get()
		w := watched{lease: r.Lease, version: r.Version}
		if err == nil && !r.Released {
			w, err = o.sessions.watched(ctx, r)
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
		case w.dead:
			return observation{record: r, found: dead, by: w}
		case since.IsZero():
			// What a listing showed may be old: the lease counts from here.
			seen, since = w, now
		case w.version != seen.version:
			return observation{record: r, found: live, by: w}
		}
		left := o.deadIn(leasehold.Record{Lease: w.lease, ExpiresAt: r.ExpiresAt}, now.Sub(since))
		if left <= 0 {
			return observation{record: r, found: dead, by: w}
		}
		if every == 0 {
			every = min(left/looksPerLease, longestLookAway)
		}
		if !sleep(ctx, min(every, left)) {
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

// longest is how long observing records takes at most.
func (o observer) longest(ctx context.Context, records []leasehold.Record) time.Duration {
	var longest time.Duration
	for _, r := range records {
		if r.Released {
			continue
		}
		if w, err := o.sessions.watched(ctx, r); err == nil {
			r.Lease = w.lease
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

// observeAloud is observe with a line that says what takes so long.
func (a *app) observeAloud(ctx context.Context, o observer, records []leasehold.Record, what string) []observation {
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
		a.say.rewrite("observing " + what + ", " + age(longest-time.Since(began)+time.Second-1) + " to go at most")
		select {
		case out := <-done:
			a.say.clear()
			return out
		case <-tick.C:
		}
	}
}
