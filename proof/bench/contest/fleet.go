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
// none knows of the others.
type client struct {
	driver *peers.Driver
	id     int64
	reuses bool // whether the client acquires a key again with the same object of the library

	mu      sync.Mutex
	objects map[string]int64 // for each key, the ID of the last granted acquire request, whose object the next request reuses
}

// grant is a granted key.
type grant struct {
	lock int64
	at   time.Time
}

// acquire waits for key, for at most wait plus a millisecond. The time in the grant is when
// this process received the reply.
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

// fleet is a number of clients, in as few processes as the contender's perProcess allows.
type fleet struct {
	clients []*client
	drivers []*peers.Driver
}

// start starts clients that share a new table.
func (s *stage) start(ctx context.Context, clients int) (*fleet, error) {
	return s.startApart(ctx, clients, s.contender.perProcess)
}

// startApart starts clients that share a new table, with at most perProcess clients in each
// process.
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

// warmUp makes every client acquire and release a key of its own for a while. After that,
// connections are open, and just-in-time compilers have compiled the code.
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

// pipe returns how long an empty request to a driver takes. This is the time that the
// driver adds to each measurement.
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

// each calls fn for all elements at the same time, and returns the first error.
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
