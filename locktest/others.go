package locktest

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/layout"
)

// Hold makes another process acquire key and returns its lock. The process renews the lock
// until it is released or the test ends. With leasehold.WithoutRenewal it behaves like a
// process that has died: its lease expires. The test fails if key is already held; to take
// over a held key, use Steal.
func (e *Env) Hold(key string, opts ...leasehold.AcquireOption) *leasehold.Lock {
	e.t.Helper()
	p := e.newOther("holder")
	defer e.follow(p)
	lock, err := p.client.TryAcquire(context.WithoutCancel(e.t.Context()), key, append(slices.Clip(opts), leasehold.NoWaitEvenIfDead())...)
	switch {
	case errors.Is(err, leasehold.ErrHeld):
		e.t.Fatalf("locktest: hold %q: %v: release it first, or take it with Steal", key, err)
	case err != nil:
		e.t.Fatalf("locktest: hold %q: %v", key, err)
	}
	return lock
}

// Steal makes another process take over key, as if the holder's lease had expired without
// the holder noticing. This is the worst case for the code under test. The write is an
// ordinary takeover, and the token grows. The old holder trusts its lock until its next
// renewal, but its writes through Commit or Guards are rejected at once.
//
// If the holder renews, or hands the key over, before the takeover is written, Steal tries
// again. If the key is free, Steal acquires it as Hold does. Steal works even while all
// processes are disconnected; its process is disconnected afterwards.
func (e *Env) Steal(key string) *leasehold.Lock {
	e.t.Helper()
	p := e.newOther("thief")
	defer e.follow(p)
	ctx := context.WithoutCancel(e.t.Context())
	for n := range maxSteals {
		lock, err := p.steal(ctx, key, n >= maxTakeovers)
		switch {
		case err == nil:
			return lock
		case !errors.Is(err, leasehold.ErrHeld) && !errors.Is(err, leasehold.ErrChanged) && !errors.Is(err, leasehold.ErrNotFound):
			e.t.Fatalf("locktest: steal %q: %v", key, err)
		}
	}
	e.t.Fatalf("locktest: steal %q: other processes were faster %d times: let fewer compete for the key", key, maxSteals)
	return nil
}

// Steal first attempts up to maxTakeovers takeovers. A holder that renews without a pause
// can prevent them. Then Steal breaks the grant, which no renewal can prevent, only another
// grant. It fails after maxSteals attempts.
const (
	maxTakeovers = 5
	maxSteals    = 1000
)

// steal makes one attempt to take over the key. If byForce is true, it breaks the grant
// instead. ErrHeld, ErrChanged and ErrNotFound mean that another process changed the record
// first.
func (p *process) steal(ctx context.Context, key string, byForce bool) (*leasehold.Lock, error) {
	lock, err := p.client.TryAcquire(ctx, key, leasehold.NoWaitEvenIfDead())
	var held *leasehold.HeldError
	if !errors.As(err, &held) {
		return lock, err
	}
	r := held.Holder
	if byForce || !p.canOutwait(r) {
		return p.seize(ctx, r)
	}
	// The call above has observed this version of the record. The next line sets the clock
	// of p, the thief, forward by one lease. So for p the version has expired, and p takes
	// over like any client.
	p.ahead.Add(int64(r.Lease))
	return p.client.TryAcquire(ctx, key, leasehold.NoWaitEvenIfDead())
}

// canOutwait reports whether p can make the holder in r appear dead by setting its own
// clock forward by the lease. It returns false if records contain their expiry, if other
// locks share the lease, or if the lease is too long for the clock.
func (p *process) canOutwait(r leasehold.Record) bool {
	return p.env.useLayout(nil).Capabilities().Expiry == layout.Observed && r.Session == "" && r.Lease < longestJump
}

// longestJump is the longest time by which steal sets a clock forward at once. maxTakeovers
// such jumps must fit into a Duration, together with the times calculated from them.
const longestJump = 10 * 365 * 24 * time.Hour

// seize breaks the grant in r and acquires the key.
func (p *process) seize(ctx context.Context, r leasehold.Record) (*leasehold.Lock, error) {
	if !p.env.useLayout(nil).Capabilities().FencingSurvivesRelease {
		time.Sleep(time.Microsecond) // the next token is the current time, and must differ from the last token
	}
	if err := p.client.Break(ctx, r, leasehold.BreakOptions{}); err != nil {
		return nil, err
	}
	return p.client.TryAcquire(ctx, r.Key.Partition, leasehold.NoWaitEvenIfDead())
}

// newOther returns a process outside the code under test.
func (e *Env) newOther(kind string) *process {
	e.t.Helper()
	return e.newProcess(leasehold.Config{Layout: e.useLayout(nil), Logger: slog.New(slog.DiscardHandler)}, kind, true)
}
