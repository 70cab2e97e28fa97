package locktest

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/leasehold-go/leasehold"
)

// Hold has another process hold key, and returns its lock, which it renews
// until it is released or the test ends. With leasehold.WithoutRenewal it is a
// process that died with the key: the lease runs out. A key that is held is an
// error of the test: Steal takes it.
func (e *Env) Hold(key string, opts ...leasehold.AcquireOption) *leasehold.Lock {
	e.t.Helper()
	p := e.newOther("holder")
	defer e.follow(p)
	lock, err := p.client.TryAcquire(context.WithoutCancel(e.t.Context()), key, opts...)
	switch {
	case errors.Is(err, leasehold.ErrHeld):
		e.t.Fatalf("locktest: hold %q: %v: have it released first, or take it with Steal", key, err)
	case err != nil:
		e.t.Fatalf("locktest: hold %q: %v", key, err)
	}
	return lock
}

// Steal has another process hold key from now on, as if the holder's lease had
// run out unnoticed: the worst case for the code under test. Its write is that
// of any takeover, and the token grows. The holder believes in its lock until
// its next renewal, what it writes through Commit or Guard is refused at once.
//
// What comes in between, such as a renewal or a hand-over, does not keep it
// from its aim. A key that nobody holds is taken as by Hold. Steal goes through
// while everyone is disconnected; its process is cut off then from there on.
func (e *Env) Steal(key string) *leasehold.Lock {
	e.t.Helper()
	p := e.newOther("thief")
	defer e.follow(p)
	ctx := context.WithoutCancel(e.t.Context())
	for n := range manySteals {
		lock, err := steal(ctx, p.client, key, n >= manyTakeovers)
		switch {
		case err == nil:
			return lock
		case !errors.Is(err, leasehold.ErrHeld) && !errors.Is(err, leasehold.ErrChanged) && !errors.Is(err, leasehold.ErrNotFound):
			e.t.Fatalf("locktest: steal %q: %v", key, err)
		}
	}
	e.t.Fatalf("locktest: steal %q: others were faster %d times: have fewer of them", key, manySteals)
	return nil
}

// How often Steal tries: first by takeovers, which a holder that renews without
// a pause comes in between of, then by breaking the grant, which only another
// grant can.
const (
	manyTakeovers = 5
	manySteals    = 1000
)

// steal tries once, by breaking the grant if byForce. ErrHeld, ErrChanged and
// ErrNotFound: somebody came in between.
func steal(ctx context.Context, thief *leasehold.Client, key string, byForce bool) (*leasehold.Lock, error) {
	r, err := thief.Get(ctx, key)
	switch {
	case errors.Is(err, leasehold.ErrNotFound):
		return thief.TryAcquire(ctx, key)
	case err != nil:
		return nil, err
	case r.Released:
		return thief.TryAcquire(ctx, key)
	}
	if byForce {
		return seize(ctx, thief, r)
	}
	// The thief has seen this version before, so long ago that its holder is
	// dead: the takeover is then the client's own.
	const skew = time.Second
	seen := leasehold.Observation{Key: r.Key, Version: r.Version, Lease: r.Lease, Since: time.Now().Add(-r.Lease).Add(-skew)}
	if err := thief.ImportObservations(skew, seen); err != nil {
		return nil, err
	}
	lock, err := thief.TryAcquire(ctx, key)
	var held *leasehold.HeldError
	if !errors.As(err, &held) || held.Holder.Version != r.Version {
		return lock, err
	}
	// A lease for ever, or a layout whose records say by the clock when they
	// end: nobody is dead by observation there.
	return seize(ctx, thief, r)
}

// seize breaks the grant in r and asks for the key.
func seize(ctx context.Context, thief *leasehold.Client, r leasehold.Record) (*leasehold.Lock, error) {
	if !thief.Capabilities().FencingSurvivesRelease {
		time.Sleep(time.Microsecond) // the next token is the time: not the same again
	}
	if err := thief.Break(ctx, r); err != nil {
		return nil, err
	}
	return thief.TryAcquire(ctx, r.Key.Partition)
}

// newOther returns a process that is not of the code under test.
func (e *Env) newOther(kind string) *process {
	e.t.Helper()
	return e.newProcess(leasehold.Config{Layout: e.settle(nil), Logger: slog.New(slog.DiscardHandler)}, kind, true)
}
