package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/requests"
	"github.com/leasehold-go/leasehold/internal/cli/scratch"
	"github.com/leasehold-go/leasehold/internal/cli/store"
)

// acquireAndRelease acquires and releases a free key, again and again.
func (b *Bench) acquireAndRelease(ctx context.Context, p *part) error {
	locks, err := b.store.Client(leasehold.Config{})
	if err != nil {
		return err
	}
	defer store.CloseLocks(locks)
	key, acquire, release := b.key("acquire"), p.operation("acquire"), p.operation("release")
	for ; !p.over() && err == nil; err = ctx.Err() {
		var lock *leasehold.Lock
		if err := p.time(acquire, func() (err error) {
			lock, err = scratch.Acquire(ctx, locks, key, leasehold.WithoutRenewal())
			return err
		}); err != nil {
			return err
		}
		if err := p.time(release, func() error { return lock.Release(ctx) }); err != nil {
			return err
		}
	}
	return err
}

// renewal renews one lock, again and again.
func (b *Bench) renewal(ctx context.Context, p *part) error {
	locks, err := b.store.Client(leasehold.Config{})
	if err != nil {
		return err
	}
	defer store.CloseLocks(locks)
	lock, err := scratch.Acquire(ctx, locks, b.key("renewal"), leasehold.WithoutRenewal())
	if err != nil {
		return err
	}
	for renew := p.operation("renewal"); !p.over() && err == nil; {
		err = p.time(renew, func() error { return lock.Renew(ctx) })
	}
	return errors.Join(err, lock.Release(ctx))
}

// handOver has clients contend for one key. Who has released it stands back until
// another client has been granted it: otherwise it would mostly be granted it again,
// as it alone need not look first. All are in one process, and so have one clock.
func (b *Bench) handOver(ctx context.Context, p *part) error {
	type grant struct {
		locks *leasehold.Client
		lock  *leasehold.Lock
		at    time.Time
		err   error
	}
	waits, stop := context.WithCancel(ctx)
	key, o, grants := b.key("hand-over"), p.operation("hand-over"), make(chan grant, b.Clients)
	o.clients = b.Clients
	contend := func(locks *leasehold.Client) {
		lock, err := scratch.Acquire(waits, locks, key)
		grants <- grant{locks, lock, time.Now(), err}
	}
	for range b.Clients {
		locks, err := b.store.Client(leasehold.Config{})
		if err != nil {
			stop()
			return err
		}
		defer store.CloseLocks(locks)
		go contend(locks)
	}
	defer stop() // before they are closed
	var last *leasehold.Client
	var released time.Time
	for {
		g := <-grants
		if g.err != nil {
			return g.err
		}
		if last != nil {
			p.add(o, g.at.Sub(released))
			go contend(last)
		}
		over := p.over()
		last, released = g.locks, time.Now()
		if err := g.lock.Release(ctx); err != nil || over {
			o.used = p.used()
			return err
		}
	}
}

// takeovers has holders die while a client waits for their keys: nothing renews
// their locks, and nothing releases them. Several keys at a time make several
// samples in the time of one lease.
func (b *Bench) takeovers(ctx context.Context, p *part) error {
	holders, err := b.store.Client(leasehold.Config{Lease: b.lease})
	if err != nil {
		return err
	}
	defer store.CloseLocks(holders)
	db, meter := requests.Metered(b.store.DB) // a takeover is what its waiter sends
	waiters, err := b.store.ClientOver(db, leasehold.Config{Lease: b.lease})
	if err != nil {
		return err
	}
	defer store.CloseLocks(waiters)
	o := p.operation("takeover")
	o.clients, o.lease = b.Clients, b.lease
	var clients errgroup.Group
	for i := range b.Clients {
		key := b.key(fmt.Sprintf("takeover/%d", i))
		clients.Go(func() error {
			for first := true; first || !p.over() && time.Since(p.began)+b.takeover <= p.limit; first = false {
				took, err := b.takeOver(ctx, holders, waiters, key)
				if err != nil {
					return err
				}
				p.add(o, took)
			}
			return nil
		})
	}
	err = clients.Wait()
	o.used = meter.Used()
	return err
}

// takeOver has one holder of key die, and returns how long another client had to
// wait for it.
func (b *Bench) takeOver(ctx context.Context, holders, waiters *leasehold.Client, key leasehold.Key) (time.Duration, error) {
	dead, err := scratch.Acquire(ctx, holders, key, leasehold.WithoutRenewal())
	if err != nil {
		return 0, err
	}
	died := time.Now()
	if _, err := dead.Detach(); err != nil {
		return 0, err
	}
	lock, err := scratch.Acquire(ctx, waiters, key, leasehold.WithoutRenewal())
	if err != nil {
		return 0, err
	}
	took := time.Since(died)
	if _, err := lock.Detach(); err != nil {
		return 0, err
	}
	return took, scratch.Delete(ctx, b.store, key)
}
