package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/checks"
	"github.com/leasehold-go/leasehold/internal/cli/requests"
	"github.com/leasehold-go/leasehold/internal/cli/scratch"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/records"
)

// benchPatience is how much longer than its time a part may take, if DynamoDB is
// slow or does not answer.
const benchPatience = 15 * time.Second

// operation is what was measured of one operation.
type operation struct {
	name    string
	took    []time.Duration
	used    requests.Usage
	clients int
	lease   time.Duration
}

// result works out percentiles, use of one operation, and the bill.
func (o *operation) result(f benchFlags) resultJSON {
	slices.Sort(o.took)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	n := float64(max(len(o.took), 1))
	return resultJSON{
		Operation: o.name, Count: len(o.took),
		P50Ms: ms(checks.Percentile(o.took, 0.5)), P95Ms: ms(checks.Percentile(o.took, 0.95)), P99Ms: ms(checks.Percentile(o.took, 0.99)), MaxMs: ms(checks.Percentile(o.took, 1)),
		Requests: float64(o.used.Requests) / n, WriteUnits: o.used.Writes / n, ReadUnits: o.used.Reads / n,
		DollarsPerMillion: (o.used.Writes*f.writePrice + o.used.Reads*f.readPrice) / n,
		WritePrice:        f.writePrice, ReadPrice: f.readPrice,
		Throttled: o.used.Throttled, Clients: o.clients, LeaseMs: o.lease.Milliseconds(),
	}
}

// part is one part of bench. Its time is over after that of the flags, or when it
// has used what was said.
type part struct {
	bench      *bench
	name       string
	limit      time.Duration
	began      time.Time
	before     requests.Usage
	operations []*operation
	done       atomic.Int64 // operations so far
}

func newPart(b *bench, name string, limit time.Duration) *part {
	return &part{bench: b, name: name, limit: limit, began: time.Now(), before: b.meter.Used()}
}

// takeoverPart is the time of the last part: that of the flags, but long enough for
// one takeover.
func (b *bench) takeoverPart() time.Duration { return max(b.flags.duration, b.takeoverTime()) }

// takeoverTime is how long a takeover takes at most, if DynamoDB answers soon.
func (b *bench) takeoverTime() time.Duration {
	late := time.Duration(0)
	if proto, err := records.Of(b.store.Layout); err == nil {
		late = proto.Skew() + b.store.Layout.Capabilities().LeaseStep
	}
	return b.lease + late + time.Second
}

// over reports whether the time of the part is over. One operation is always measured.
func (p *part) over() bool {
	if p.done.Load() == 0 {
		return false
	}
	used, seconds := p.bench.meter.Used().Minus(p.before), p.limit.Seconds()
	return time.Since(p.began) >= p.limit || used.Writes >= seconds*writesPerSecond || used.Reads >= seconds*readsPerSecond
}

// run measures the part. It ends although DynamoDB does not answer.
func (p *part) run(ctx context.Context, measure func(context.Context, *part) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, p.limit+benchPatience, fmt.Errorf("%s: not done in time", p.name))
	defer cancel()
	defer p.report()()
	return measure(ctx, p)
}

// operation adds an operation to the part.
func (p *part) operation(name string) *operation {
	o := &operation{name: name}
	p.operations = append(p.operations, o)
	return o
}

// time measures one call of do, while nobody else sends requests.
func (p *part) time(o *operation, do func() error) error {
	before, began := p.bench.meter.Used(), time.Now()
	if err := do(); err != nil {
		return err
	}
	o.took = append(o.took, time.Since(began))
	o.used = o.used.Plus(p.bench.meter.Used().Minus(before))
	p.done.Add(1)
	return nil
}

// report says what is measured, until stop is called: on a terminal each second.
func (p *part) report() (stop func()) {
	say := p.bench.app.say
	if !say.Rewrites() {
		say.Text("measuring %s for up to %s", p.name, wording.Age(p.limit+time.Second-1))
		return func() {}
	}
	ended, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			say.Rewrite(fmt.Sprintf("measuring %s: %s left, %d so far", p.name, wording.Age(p.limit-time.Since(p.began)), p.done.Load()))
			select {
			case <-tick.C:
			case <-ended:
				return
			}
		}
	}()
	return func() {
		close(ended)
		<-gone
		say.Clear()
	}
}

// key returns a key of this run, which clean deletes.
func (b *bench) key(name string) leasehold.Key {
	key := scratchOf(b.store).Key(b.name+name, "bench")
	b.keys = append(b.keys, key)
	return key
}

// client returns a lock client of its own, as of another process.
func (b *bench) client(lease time.Duration) (*leasehold.Client, error) {
	return b.store.Locks(leasehold.Config{Lease: lease})
}

// acquireAndRelease acquires and releases a free key, again and again.
func (b *bench) acquireAndRelease(ctx context.Context, p *part) error {
	locks, err := b.client(0)
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
func (b *bench) renewal(ctx context.Context, p *part) error {
	locks, err := b.client(0)
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

// relay is what the clients of a hand-over share. They are in one process, and so
// have one clock.
type relay struct {
	mu       sync.Mutex
	holder   int       // the last client that was granted the key; -1: none yet
	released time.Time // when it began to release it
	took     []time.Duration
	next     chan struct{} // closed at the next grant
}

// granted is called by a client that has just been granted the key. It returns
// whether another client had it before, and a channel that is closed when another
// has it after.
func (r *relay) granted(client int) (handed bool, another <-chan struct{}) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if handed = r.holder >= 0 && r.holder != client; handed {
		r.took = append(r.took, now.Sub(r.released))
	}
	close(r.next)
	r.holder, r.next = client, make(chan struct{})
	return handed, r.next
}

func (r *relay) releases() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.released = time.Now()
}

// handOver has clients contend for one key. Who has released it stands back until
// another client has been granted it: otherwise it would mostly be granted it again,
// as it alone need not look first.
func (b *bench) handOver(ctx context.Context, p *part) error {
	waits, stop := context.WithCancel(ctx)
	defer stop()
	key, r := b.key("hand-over"), &relay{holder: -1, next: make(chan struct{})}
	failed := make([]error, b.flags.clients)
	var wg sync.WaitGroup
	for i := range b.flags.clients {
		locks, err := b.client(0)
		if err != nil {
			return err
		}
		defer store.CloseLocks(locks)
		wg.Go(func() {
			for waits.Err() == nil {
				lock, err := scratch.Acquire(waits, locks, key)
				if err != nil {
					if waits.Err() == nil {
						failed[i] = err
						stop()
					}
					return
				}
				handed, another := r.granted(i)
				if handed {
					p.done.Add(1)
				}
				over := p.over()
				r.releases()
				if err := lock.Release(ctx); err != nil {
					failed[i] = err
					over = true
				}
				if over {
					stop()
					return
				}
				select {
				case <-another:
				case <-waits.Done():
				}
			}
		})
	}
	wg.Wait()
	o := p.operation("hand-over")
	o.took, o.used, o.clients = r.took, b.meter.Used().Minus(p.before), b.flags.clients
	return errors.Join(errors.Join(failed...), ctx.Err())
}

// takeover has holders die while a client waits for their keys: nothing renews
// their locks, and nothing releases them. Several keys at a time make several
// samples in the time of one lease.
func (b *bench) takeover(ctx context.Context, p *part) error {
	holders, err := b.client(b.lease)
	if err != nil {
		return err
	}
	defer store.CloseLocks(holders)
	db, meter := requests.Metered(b.store.DB) // a takeover is what its waiter sends
	waiters, err := b.store.LocksOver(db, leasehold.Config{Lease: b.lease})
	if err != nil {
		return err
	}
	defer store.CloseLocks(waiters)
	var mu sync.Mutex
	o := p.operation("takeover")
	o.clients, o.lease = b.flags.clients, b.lease
	failed := make([]error, b.flags.clients)
	var wg sync.WaitGroup
	for i := range b.flags.clients {
		key := b.key(fmt.Sprintf("takeover/%d", i))
		wg.Go(func() {
			for first := true; first || !p.over() && time.Since(p.began)+b.takeoverTime() <= p.limit; first = false {
				took, err := b.takeOver(ctx, holders, waiters, key)
				if err != nil {
					failed[i] = err
					return
				}
				p.done.Add(1)
				mu.Lock()
				o.took = append(o.took, took)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	o.used = meter.Used()
	return errors.Join(failed...)
}

// takeOver has one holder of key die, and returns how long another client had to
// wait for it.
func (b *bench) takeOver(ctx context.Context, holders, waiters *leasehold.Client, key leasehold.Key) (time.Duration, error) {
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
	return took, scratchOf(b.store).Delete(ctx, key)
}
