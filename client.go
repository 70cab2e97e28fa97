package leasehold

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/machine"
	"github.com/leasehold-go/leasehold/internal/observed"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/internal/renewals"
	"github.com/leasehold-go/leasehold/internal/seek"
	"github.com/leasehold-go/leasehold/internal/unsettled"
	"github.com/leasehold-go/leasehold/layout"
)

// Client acquires and holds locks in one table. It is safe for concurrent use;
// one per process and table is enough.
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
	chance   func() float64 // in [0, 1): for pauses, so that clients do not retry together

	seek        *seek.Client
	observer    *liveness.Observer
	resumes     unsettled.Attempts[string] // to resume a grant, by its id
	resuming    resuming
	sharing     *sharing // with Config.SharedLease
	waitFails   waitFails
	connections connections
	leases      *lease.Client
	failing     failing
	waiting     atomic.Int64

	mu      sync.Mutex // guards what follows; never held across I/O
	held    map[*holding]int
	grants  int           // ever, to put held in order
	running int           // calls and senders that are not done
	idle    chan struct{} // closed when running comes to 0; Close waits for it
	closing chan struct{} // closed when Close is called
	closed  chan struct{} // closed when Close is done
	result  error         // of Close
}

// maxRemembered is how many keys a client remembers that it does not watch.
const maxRemembered = 10_000

// New returns a Client. It sends nothing and starts no goroutine. The error lists
// everything that is wrong with cfg. A nil *dynamodb.Client is an error, too.
func New(db DB, cfg Config) (*Client, error) {
	concurrency := cfg.RenewConcurrency
	if cfg.Layout == nil {
		cfg.Layout = layout.Native{}
	}
	proto, layoutErr := records.Of(cfg.Layout)
	if proto == nil { // nor does a nil pointer say what it can do
		cfg.Layout = layout.Native{}
	}
	cfg, err := cfg.complete(proto)
	if err := errors.Join(checkDB(db), err, layoutErr); err != nil {
		return nil, err
	}
	on := machine.Machine{Now: machine.Now, Wall: time.Now, Chance: rand.Float64, Memory: maxRemembered}
	if own, ok := db.(machine.Provider); ok {
		on = own.Machine(on)
	}
	owner := protocol.NewOwner(cfg.Owner)
	c := &Client{
		cfg: cfg, proto: proto, caps: cfg.Layout.Capabilities(),
		timing: lease.Timing{Lease: cfg.Lease, Margin: cfg.Margin, Every: cfg.RenewEvery, Skew: proto.Skew()},
		owner:  owner, overhead: recordOverhead(owner), log: cfg.Logger, now: on.Now, wall: on.Wall, chance: on.Chance,
		held: map[*holding]int{}, closing: make(chan struct{}), closed: make(chan struct{}),
	}
	c.requests = &attempts.Sender{DB: db, Table: cfg.Table, Keys: proto, Chance: func() float64 { return c.chance() }, Log: cfg.Logger}
	c.observer = &liveness.Observer{
		Requests: c.requests, Proto: proto, Caps: c.caps, Now: func() decide.Instant { return c.now() },
		Lease: cfg.Lease, PollMax: cfg.PollMax, Expires: c.deadExpires,
		Damaged: func(key protocol.Key, item protocol.Item, err error) error { return c.recordError(Key(key), item, err) },
		Records: observed.New[protocol.Key](on.Memory), Entries: observed.New[liveness.Entry](on.Memory),
	}
	c.leases = &lease.Client{
		Now: func() decide.Instant { return c.now() }, Requests: c.requests, ThroughOutage: cfg.HoldThroughOutage,
		Queue: renewals.New(cfg.RenewConcurrency, c.detach, c.chance),
	}
	c.connections.idle = idleConnections(db)
	c.connections.check(concurrency, 0, cfg.Logger)
	if cfg.SharedLease {
		c.sharing = &sharing{c: c, proto: proto.(protocol.Sharing), busy: make(chan struct{}, 1)}
	}
	c.seek = newSeek(c)
	return c, nil
}

// Capabilities returns what the client's layout can do.
func (c *Client) Capabilities() layout.Capabilities { return c.caps }

// Held returns the locks this client holds now, in order of acquisition.
func (c *Client) Held() []*Lock {
	var locks []*Lock
	for _, h := range c.holdings() {
		h.mu.Lock()
		locks = append(locks, h.handles...)
		h.mu.Unlock()
	}
	return locks
}

// holdings returns what is held, in order of acquisition.
func (c *Client) holdings() []*holding {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*holding, 0, len(c.held))
	for h := range c.held {
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b *holding) int { return cmp.Compare(c.held[a], c.held[b]) })
	return all
}

// holds reports whether a lock of this client is that grant.
func (c *Client) holds(key protocol.Key, grant string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for h := range c.held {
		if h.key == Key(key) && h.lease.Record().Grant == grant { // of one key there may be several readers
			return true
		}
	}
	return false
}

func (c *Client) keep(h *holding) {
	c.mu.Lock()
	if !h.lease.IsOver() {
		c.grants++
		c.held[h] = c.grants
	}
	held := len(c.held)
	c.mu.Unlock()
	if h.session == nil && held/locksPerConnection > c.connections.idle {
		c.connections.check(c.cfg.RenewConcurrency, held, c.log)
	}
}

func (c *Client) drop(h *holding) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.held, h)
}

// Stats is a snapshot of what a Client does.
type Stats struct {
	Held         int           // locks held
	Waiting      int           // calls that wait for a key
	Renewing     int           // renewals in flight
	MinRemaining time.Duration // until the trust in the first of the held locks ends; 0: none is held
}

// Stats returns what the client does now, for gauges. Nothing is sent.
func (c *Client) Stats() Stats {
	s := Stats{Waiting: int(c.waiting.Load()), Renewing: c.leases.Sending()}
	now := c.now()
	for _, h := range c.holdings() {
		remaining := now.Remaining(h.lease.TrustedUntil())
		if s.Held == 0 || remaining < s.MinRemaining {
			s.MinRemaining = max(remaining, 0)
		}
		s.Held++
	}
	return s
}

// emit reports an event. No mutex is held.
func (c *Client) emit(ctx context.Context, e Event) {
	c.log.LogAttrs(ctx, slog.LevelDebug, "leasehold: "+string(e.Kind), slog.String("key", e.Key.String()),
		slog.Int64("token", e.Token), slog.Any("err", e.Err))
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
			c.detach(undo)
		}
	}()
	c.emit(ctx, e)
	told = true
}

// enter counts a call that Close waits for; false: the client is closed.
func (c *Client) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosing() {
		return false
	}
	c.running++
	return true
}

// isClosing reports whether Close has been called. Close releases what was held before
// that. A call that is granted something later gives it back.
func (c *Client) isClosing() bool {
	select {
	case <-c.closing:
		return true
	default:
		return false
	}
}

// untilClosing returns a context that ends with ctx, and with ErrClosed when Close is
// called: retries under it do not delay Close.
func (c *Client) untilClosing(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-c.closing:
			cancel(ErrClosed)
		case <-out.Done():
		}
	}()
	return out, func() { cancel(context.Canceled) }
}

func (c *Client) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	if c.running == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// detach runs fn on a goroutine of its own; Close waits for it.
func (c *Client) detach(fn func()) {
	c.mu.Lock()
	c.running++
	c.mu.Unlock()
	go func() {
		defer c.leave()
		fn()
	}()
}
