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

// Hold creates another process, which acquires key, and returns the lock. The process renews the
// lock until the test releases the lock or ends. With leasehold.WithoutRenewal, the process behaves
// as if it had died: the lease expires. If key is held, the test fails: use Steal instead.
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

// Steal creates another process, which takes over key. It simulates the worst case for the code
// under test: the lease has expired, and the holder has not noticed. The takeover is an ordinary
// write, and increases the fencing token. The old holder trusts its lock until its next renewal,
// but DynamoDB rejects its later writes through Commit or Guards.
//
// If the holder renews, or hands the key over, before the takeover is written, Steal tries
// again. If the key is free, Steal acquires it as Hold does. If all processes are disconnected,
// Steal works nevertheless, and disconnects the new process afterwards.
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

// In its first maxTakeovers attempts, Steal tries to take the key over, which fails if the holder
// renews at that moment. Later attempts break the grant and acquire the key, because a break fails
// only if the grant has ended. Steal gives up after maxSteals attempts.
const (
	maxTakeovers = 5
	maxSteals    = 1000
)

// steal makes one attempt to acquire the key, or take it over. If byForce is true, or p cannot
// outwait the holder, steal breaks the grant and then acquires the key. The error is ErrHeld,
// ErrChanged or ErrNotFound if another process changed the record meanwhile.
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
	// The process p considers a holder dead if the holder's record has not changed for one lease. The
	// call above has read the record. With the clock of p one lease ahead, the next call takes the key
	// over, unless the record has changed.
	p.ahead.Add(int64(r.Lease))
	return p.client.TryAcquire(ctx, key, leasehold.NoWaitEvenIfDead())
}

// canOutwait reports whether p can take over from the holder in r by setting its clock forward by
// one lease. The result is false if the layout stores an expiry time, if several locks share the
// lease, or if the lease is at least longestJump.
func (p *process) canOutwait(r leasehold.Record) bool {
	return p.env.useLayout(nil).Capabilities().Expiry == layout.Observed && r.Session == "" && r.Lease < longestJump
}

// In one attempt, steal sets a clock forward by less than longestJump. So maxTakeovers attempts
// together, and the times calculated from the clock, do not overflow a Duration.
const longestJump = 10 * 365 * 24 * time.Hour

// seize breaks the grant in r, and then acquires the key.
func (p *process) seize(ctx context.Context, r leasehold.Record) (*leasehold.Lock, error) {
	if !p.env.useLayout(nil).Capabilities().FencingSurvivesRelease {
		// In a layout whose releases may delete the token, the next token is the current time.
		// The pause makes the next token differ from the last one.
		time.Sleep(time.Microsecond)
	}
	if err := p.client.Break(ctx, r, leasehold.BreakOptions{}); err != nil {
		return nil, err
	}
	return p.client.TryAcquire(ctx, r.Key.Partition, leasehold.NoWaitEvenIfDead())
}

// newOther returns a process that is not part of the code under test.
func (e *Env) newOther(kind string) *process {
	e.t.Helper()
	return e.newProcess(leasehold.Config{Layout: e.useLayout(nil), Logger: slog.New(slog.DiscardHandler)}, kind, true)
}
