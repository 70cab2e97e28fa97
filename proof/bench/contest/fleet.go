//go:build linux

package contest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/proof/interop/peers"

	"github.com/leasehold-go/leasehold/proof/bench/meter"
	"github.com/leasehold-go/leasehold/proof/bench/stats"
)

type usage = meter.Usage

// client is one client of a library. The clients of a fleet behave like separate programs:
// they communicate only through the lock table.
type client struct {
	driver *peers.Driver
	id     int64
	reuses bool // whether the client acquires the same key again with the same lock object of the library

	mu      sync.Mutex
	objects map[string]int64 // by key: ID of the last granted acquire request; the next request reuses the lock object of that request
}

// grant is a grant of a key: the ID of the acquire request, and the time of the reply.
type grant struct {
	lock int64
	at   time.Time
}

// acquire acquires the key. It waits for at most the duration "wait" plus one millisecond. Without
// this millisecond the limit could be 0, and the library would then not wait at all. The grant
// contains the time at which this process received the reply.
func (c *client) acquire(ctx context.Context, key string, wait time.Duration) (grant, error) {
	request := peers.Request{Do: "acquire", Client: c.id, Key: key, Wait: max(wait, 0) + time.Millisecond}
	c.mu.Lock()
	request.Again = c.objects[key]
	c.mu.Unlock()
	call := c.driver.Send(request)
	reply, err := call.Reply(ctx)
	if c.reuses && err == nil {
		c.mu.Lock()
		c.objects[key] = call.ID
		c.mu.Unlock()
	}
	return grant{call.ID, reply.At}, err
}

func (c *client) release(ctx context.Context, g grant) error {
	_, err := c.driver.Do(ctx, peers.Request{Do: "release", Client: c.id, Lock: g.lock})
	return err
}

func (c *client) holds(ctx context.Context, g grant) (bool, error) {
	reply, err := c.driver.Do(ctx, peers.Request{Do: "held", Client: c.id, Lock: g.lock})
	return reply.Held, err
}

// fleet is a group of clients of one contender, with the driver processes in which they
// run.
type fleet struct {
	clients []*client
	drivers []*peers.Driver
}

// start starts the given number of clients, which share one table, in as few processes as
// the contender's perProcess allows.
func (s *stage) start(ctx context.Context, clients int) (*fleet, error) {
	return s.startApart(ctx, clients, s.contender.perProcess)
}

// startApart starts the given number of clients, which share one table, with at most
// perProcess clients in each process.
func (s *stage) startApart(ctx context.Context, clients, perProcess int) (*fleet, error) {
	f := &fleet{}
	s.fleets = append(s.fleets, f)
	settings := s.contender.settings(s.scenario)
	settings.Table = s.table
	for len(f.clients) < clients {
		d, err := peers.Start(ctx, s.contender.peer, s.meter.Endpoint, settings)
		if err != nil {
			return nil, err
		}
		f.drivers = append(f.drivers, d)
		f.add(d, 0, s.contender.reuses)
		for n := 1; n < perProcess && len(f.clients) < clients; n++ {
			id, err := d.Open(ctx)
			if err != nil {
				return nil, err
			}
			f.add(d, id, s.contender.reuses)
		}
	}
	return f, f.warmUp(ctx)
}

func (f *fleet) add(d *peers.Driver, id int64, reuses bool) {
	f.clients = append(f.clients, &client{driver: d, id: id, reuses: reuses, objects: map[string]int64{}})
}

// warmUp makes each client acquire and release a separate key for half a second. After
// that, connections are open, and just-in-time compilers have compiled the code.
func (f *fleet) warmUp(ctx context.Context) error {
	const least = 500 * time.Millisecond
	until := time.Now().Add(least)
	return each(f.clients, func(i int, c *client) error {
		for first := true; first || time.Now().Before(until); first = false {
			g, err := c.acquire(ctx, fmt.Sprint("warm-up/", i), time.Minute)
			if err != nil {
				return err
			}
			if err := c.release(ctx, g); err != nil {
				return err
			}
		}
		return nil
	})
}

// pipe returns how long a driver takes to reply to a request that does nothing. Every
// measured time of a request to a driver includes this overhead.
func (f *fleet) pipe(ctx context.Context) (time.Duration, error) {
	const asked = 21
	took := make([]float64, 0, asked)
	for range asked {
		began := time.Now()
		if _, err := f.drivers[0].Do(ctx, peers.Request{Do: "nothing"}); !errors.Is(err, peers.ErrUnsupported) {
			return 0, fmt.Errorf("a request for nothing: %w, want it unsupported", err)
		}
		took = append(took, float64(time.Since(began)))
	}
	return time.Duration(stats.Of(took).Median), nil
}

func (f *fleet) kill() {
	for _, d := range f.drivers {
		_ = d.Kill()
	}
}

// The function "each" calls fn for all elements at the same time, waits for all calls, and returns
// the first error.
func each[T any](all []T, fn func(i int, one T) error) error {
	errs := make(chan error, len(all))
	for i, one := range all {
		go func() { errs <- fn(i, one) }()
	}
	var first error
	for range all {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return first
}
