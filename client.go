package leasehold

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/leasehold-go/leasehold/internal/acquire"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/hold"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/machine"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/internal/renewals"
	"github.com/leasehold-go/leasehold/layout"
)

// Client acquires and holds locks in one table. It is safe for concurrent use.
type Client struct {
	cfg    Config
	env    *core.Env
	timing lease.Timing

	acquirer *acquire.Acquirer
	leases   *lease.Leases
	holds    *hold.Holds
	waitLine lineAMinute  // limits log lines about failed requests of waiting calls
	unlogged atomic.Int64 // number of failed requests of waiting calls since the last log line
	moved    lineAMinute  // limits log lines about moves to another Region: while all Regions are down, requests move again and again
	waiting  atomic.Int64
}

// maxRemembered is the largest number of keys whose record versions a client remembers although no
// call waits for these keys.
const maxRemembered = 10_000

// New returns a Client. It sends nothing and starts no goroutine. The error lists every
// problem of cfg. If a credentials file may be rewritten while locks are held, see the
// example of Config.OnEvent.
func New(db DB, cfg Config) (*Client, error) {
	if cfg.Layout == nil {
		cfg.Layout = layout.Native{}
	}
	proto, layoutErr := records.WithMaxSkew(cfg.Layout, cfg.MaxSkew)
	if proto == nil { // proto is also nil if cfg.Layout is an interface that holds a nil pointer
		cfg.Layout = layout.Native{}
		proto, _ = records.Of(cfg.Layout)
	}
	if errors.Is(layoutErr, errors.ErrUnsupported) {
		layoutErr = cfg.maxSkewProblem()
	}
	cfg, err := cfg.complete(proto)
	if err := errors.Join(checkDB(db, cfg.Layout), err, layoutErr); err != nil {
		return nil, err
	}
	on := machine.Machine{Now: machine.Now, Wall: time.Now, Chance: rand.Float64, Memory: maxRemembered, Renewals: mostRenewals}
	if own, ok := db.(machine.Provider); ok {
		on = own.Machine(on)
	}
	c := &Client{cfg: cfg, timing: lease.Timing{Lease: cfg.Lease, Margin: cfg.Margin, Every: cfg.RenewEvery, Skew: proto.Skew()}}
	c.env = newEnv(c, db, proto, on)
	c.leases = &lease.Leases{
		Env: c.env, ThroughOutage: throughOutage(cfg.Layout), Scheduler: renewals.New(on.Renewals, c.env.Detach, on.Chance),
	}
	keys := acquire.NewKeys(c.env)
	c.holds = hold.New(c.env, keys, c.leases, c.timing, cfg.SharedLease)
	c.acquirer = acquire.New(keys, liveness.New(c.env), c.holds)
	return c, nil
}

// Held returns the locks that this client holds, in order of acquisition.
func (c *Client) Held() []*Lock {
	var locks []*Lock
	for _, h := range c.holds.Locks() {
		for _, handle := range h.Handles() {
			locks = append(locks, lockOf(handle))
		}
	}
	return locks
}

// Stats is a snapshot of a Client's state.
type Stats struct {
	Held         int           // locks held
	Waiting      int           // calls that wait for a key
	Renewing     int           // renewals in flight
	MinRemaining time.Duration // shortest time for which a held lock is still trusted; 0 if none is held
	Region       string        // Region that requests go to; empty unless the DB is from package regions, and after Close
}

// Stats returns a snapshot, for gauges. It sends nothing.
func (c *Client) Stats() Stats {
	s := Stats{Waiting: int(c.waiting.Load()), Renewing: c.leases.Sending()}
	if regions, ok := c.env.Requests.DB.(attempts.Regions); ok && c.env.Closed.Err() == nil {
		s.Region = regions.State(c.cfg.Table).Region
	}
	now := c.env.Now()
	for _, h := range c.holds.Locks() {
		remaining := now.Remaining(h.Lease().TrustedUntil())
		if s.Held == 0 || remaining < s.MinRemaining {
			s.MinRemaining = max(remaining, 0)
		}
		s.Held++
	}
	return s
}

// Close closes the client. Waiting and later calls return ErrClosed, except Get and List. Every
// lock's context ends with ErrClosed. A lock is released once no function in Do runs under it.
// Errors are joined. If ctx ends, Close stops after Config.ReleaseGrace: the other locks stay held
// until their leases expire. A second Close waits for the first, and returns its error.
func (c *Client) Close(ctx context.Context) error { return c.holds.Close(ctx) }
