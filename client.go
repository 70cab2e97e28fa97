package leasehold

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/breaking"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/hold"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/machine"
	"github.com/leasehold-go/leasehold/internal/observed"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/internal/renewals"
	"github.com/leasehold-go/leasehold/internal/seek"
	"github.com/leasehold-go/leasehold/layout"
)

// Client acquires and holds locks in one table. It is safe for concurrent use; one per
// process and table is enough.
type Client struct {
	requests *attempts.Sender
	cfg      Config
	timing   lease.Timing
	proto    protocol.Protocol
	caps     layout.Capabilities
	owner    string // with the client id
	overhead int    // bytes of a record without key, data and attributes
	log      *slog.Logger
	now      func() decide.Instant // both clocks
	wall     func() time.Time

	seek        *seek.Client
	observer    *liveness.Observer
	leases      *lease.Client
	holds       *hold.Client
	breaks      *breaking.Client
	waitFails   waitFails
	moved       lineAMinute // while all Regions are down requests move on and on
	connections connections
	waiting     atomic.Int64
}

// maxRemembered is how many keys a client remembers that it does not watch.
const maxRemembered = 10_000

// New returns a Client. It sends nothing and starts no goroutine. The error lists every
// problem of cfg. A nil *dynamodb.Client is an error, too.
//
// The SDK renews credentials of db that have an expiry. It never reads a credentials file a
// second time: if yours may be rewritten while locks are held, call Invalidate of the
// aws.CredentialsCache after DynamoDB has refused them, as an example of Config.OnEvent
// does.
func New(db DB, cfg Config) (*Client, error) {
	if cfg.Layout == nil {
		cfg.Layout = layout.Native{}
	}
	proto, layoutErr := records.WithMaxSkew(cfg.Layout, cfg.MaxSkew)
	if proto == nil { // a nil layout pointer has no capabilities either
		cfg.Layout = layout.Native{}
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
	owner := protocol.NewOwner(cfg.Owner)
	c := &Client{
		cfg: cfg, proto: proto, caps: cfg.Layout.Capabilities(),
		timing: lease.Timing{Lease: cfg.Lease, Margin: cfg.Margin, Every: cfg.RenewEvery, Skew: proto.Skew()},
		owner:  owner, overhead: recordOverhead(owner, proto), log: cfg.Logger, now: on.Now, wall: on.Wall,
	}
	c.requests = &attempts.Sender{DB: db, Table: cfg.Table, Keys: proto, Chance: on.Chance, Log: cfg.Logger}
	if several, ok := db.(attempts.Regions); ok {
		c.requests.Regions, c.requests.Listener = several, regionListener{c}
	}
	c.holds = newHolds(c, on.Renewals)
	c.observer = &liveness.Observer{
		Requests: c.requests, Proto: proto, Caps: c.caps, Now: on.Now, Wall: on.Wall,
		Lease: cfg.Lease, PollMax: cfg.PollMax, Expires: c.holds.DeadExpires,
		Damaged: userErrors{c}.Unreadable,
		Records: observed.New(on.Memory),
	}
	c.leases = &lease.Client{
		Now: on.Now, Requests: c.requests, ThroughOutage: throughOutage(cfg.Layout),
		Queue: renewals.New(on.Renewals, c.holds.Detach, on.Chance),
	}
	c.connections.idle = idleConnections(db)
	c.seek = newSeek(c)
	c.breaks = newBreaks(c)
	c.holds.Observer, c.holds.Leases, c.holds.Seek = c.observer, c.leases, c.seek
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

// Stats is a snapshot of a Client.
type Stats struct {
	Held         int           // locks held
	Waiting      int           // calls that wait for a key
	Renewing     int           // renewals in flight
	MinRemaining time.Duration // until trust in the first of the held locks ends; 0 if none is held
	Region       string        // where requests go; empty unless the DB is one of package regions
}

// Stats returns a snapshot, for gauges. It sends nothing.
func (c *Client) Stats() Stats {
	s := Stats{Waiting: int(c.waiting.Load()), Renewing: c.leases.Sending()}
	if c.requests.Regions != nil {
		s.Region = c.requests.Regions.State(c.cfg.Table).Region
	}
	now := c.now()
	for _, h := range c.holds.Locks() {
		remaining := now.Remaining(h.Lease().TrustedUntil())
		if s.Held == 0 || remaining < s.MinRemaining {
			s.MinRemaining = max(remaining, 0)
		}
		s.Held++
	}
	return s
}

// emit reports an event. No mutex is held.
func (c *Client) emit(ctx context.Context, e Event) {
	if c.log.Enabled(ctx, slog.LevelDebug) { // the words cost more than the question
		c.log.LogAttrs(ctx, slog.LevelDebug, "leasehold: "+string(e.Kind), slog.String("key", e.Key.String()),
			slog.Int64("token", e.Token), slog.Any("err", e.Err))
	}
	if c.cfg.OnEvent != nil {
		e.Time = c.wall()
		if e.Holder != nil {
			holder := e.Holder.clone()
			e.Holder = &holder
		}
		c.cfg.OnEvent(ctx, e)
	}
}

// emitOr reports an event on a caller's goroutine. If OnEvent panics, the caller never
// gets what the event reports: undo takes it back.
func (c *Client) emitOr(ctx context.Context, e Event, undo func()) {
	told := false
	defer func() {
		if !told {
			c.holds.Detach(undo)
		}
	}()
	c.emit(ctx, e)
	told = true
}

// Close ends the client. Calls that wait for a key return ErrClosed, and so do later
// calls. Every lock's context ends with the cause ErrClosed. Each lock is released
// once no function in Do runs under it: those with the least trust left go first, and
// at most 128 at a time. Errors are joined. Once ctx has ended and
// Config.ReleaseGrace has passed, locks that are still held are left to their leases.
// A second Close waits for the first until its own ctx ends, and returns the same.
func (c *Client) Close(ctx context.Context) error { return c.holds.Close(ctx) }
