package hold

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/ctxmutex"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/seek"
	"github.com/leasehold-go/leasehold/internal/unsettled"
)

// Client has the locks of one client, and the settings they share.
type Client struct {
	Table    string
	Requests *attempts.Sender
	Proto    protocol.Protocol
	Observer *liveness.Observer
	Leases   *lease.Client
	Seek     *seek.Client
	Timing   lease.Timing
	Owner    string // without the id of a client or a session
	Log      *slog.Logger
	Now      func() decide.Instant // both clocks
	Wall     func() time.Time

	PollMax          time.Duration
	ReleaseGrace     time.Duration
	Retention        time.Duration // 0 for the default, or Forever
	Concurrency      int           // how many locks are released at a time when the client closes
	DeletesByDefault bool          // a release deletes the record, unless its caller says otherwise

	Errors   Errors
	Listener Listener
	Grew     func(held int) // called when one lock more is held that is renewed by itself

	sharing  *sharing // nil if each lock is renewed by itself
	failing  failing
	resumes  unsettled.Attempts[string] // attempts to resume a grant, by its id
	resuming resuming

	mu      sync.Mutex // guards what follows; never held across I/O
	held    map[*Lock]int
	grants  int                // ever, to put held in order
	unfreed map[*Lock]struct{} // locks whose release has failed, and is repeated by a timer
	running int                // calls and senders that are not done
	idle    chan struct{}      // closed when running comes to 0; Close waits for it
	result  error              // Close returns it

	closing context.Context         // ends with ErrClosed when Close is called
	close   context.CancelCauseFunc // ends it, with mu held for Enter
	closed  context.Context         // ends with ErrClosed when Close is done: no request is begun after that
	end     context.CancelCauseFunc // ends it
}

// Errors makes the errors that callers receive, and whose types they know.
type Errors interface {
	// Lost says how a lock was lost. It matches ErrLost.
	Lost(l Loss) error

	// Loss returns the Loss that Lost made err of, and false if err is no such error.
	Loss(err error) (Loss, bool)

	// Failed says why a request of an operation did nothing, or may have done something.
	Failed(op string, key protocol.Key, err error) error

	// Uncommitted says which of the caller's writes cancelled a commit.
	Uncommitted(key protocol.Key, reasons []types.CancellationReason, err error) error
}

// Listener receives reports. No mutex is held meanwhile.
type Listener interface {
	Renewed(ctx context.Context, e Event)
	RenewFailed(ctx context.Context, e Event)
	Lost(ctx context.Context, e Event)
	Released(ctx context.Context, e Event)
	Committed(ctx context.Context, e Event)
	Throttled(ctx context.Context, e Event)
}

// Event is a report to a Listener. Fields that do not apply are zero.
type Event struct {
	Key       protocol.Key
	Token     int64
	Took      time.Duration // duration of the requests
	Held      time.Duration // how long the grant lasted, if no event has said so before
	Remaining time.Duration // trust that is left
	Requests  int
	Err       error
}

// Begin makes the client ready to hold locks; shared: under sessions.
func (c *Client) Begin(shared bool) {
	c.held, c.unfreed = map[*Lock]int{}, map[*Lock]struct{}{}
	c.closing, c.close = context.WithCancelCause(context.Background())
	c.closed, c.end = context.WithCancelCause(context.Background())
	if shared {
		c.sharing = &sharing{c: c, proto: c.Proto.(protocol.Native), busy: ctxmutex.New()}
	}
}

// Shares reports whether locks are held under sessions.
func (c *Client) Shares() bool { return c.sharing != nil }

// Sessions returns the shared leases that locks are granted under, nil if each is renewed by
// itself.
func (c *Client) Sessions() seek.Sessions {
	if c.sharing == nil {
		return nil
	}
	return c.sharing
}

// Locks returns what is held, in order of acquisition.
func (c *Client) Locks() []*Lock {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Keys(c.held), func(a, b *Lock) int { return cmp.Compare(c.held[a], c.held[b]) })
}

// Holds reports whether a lock of this client is that grant.
func (c *Client) Holds(key protocol.Key, grant string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for h := range c.held {
		if h.key == key && h.lease.Record().Grant == grant { // several grants of one key may be known
			return true
		}
	}
	return false
}

func (c *Client) keep(h *Lock) {
	c.mu.Lock()
	if !h.lease.IsOver() {
		c.grants++
		c.held[h] = c.grants
	}
	held := len(c.held)
	c.mu.Unlock()
	if h.session == nil {
		c.Grew(held)
	}
}

func (c *Client) drop(h *Lock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.held, h)
}

// repeats notes whether the release of a lock has failed, and is repeated. Close frees such
// locks too.
func (c *Client) repeats(h *Lock, repeats bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if repeats {
		c.unfreed[h] = struct{}{}
	} else {
		delete(c.unfreed, h)
	}
}

// failedToFree returns the locks whose release has failed, and is repeated.
func (c *Client) failedToFree() []*Lock {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.unfreed))
}

// Enter counts a call that Close waits for. It returns false if the client is closed.
func (c *Client) Enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.IsClosing() {
		return false
	}
	c.running++
	return true
}

// Leave ends what Enter has counted.
func (c *Client) Leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	if c.running == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// Detach runs fn on a goroutine of its own; Close waits for it.
func (c *Client) Detach(fn func()) {
	c.mu.Lock()
	c.running++
	c.mu.Unlock()
	go func() {
		defer c.Leave()
		deepen()
		fn()
	}()
}

// deepen makes the stack of a new goroutine as deep as the SDK's requests need it, at
// once: otherwise it grows in steps, and each step copies all frames.
//
//go:noinline
func deepen() {
	var frame [24 << 10]byte
	runtime.KeepAlive(&frame)
}

// Closing ends with ErrClosed when Close is called.
func (c *Client) Closing() context.Context { return c.closing }

// IsClosing reports whether Close has been called. Close releases what was held before
// that. A call that is granted something later gives it back; Resume leaves it to its lease.
func (c *Client) IsClosing() bool { return c.closing.Err() != nil }

// UntilClosing returns a context that ends with ctx, and with ErrClosed when Close is
// called: retries under it do not delay Close.
func (c *Client) UntilClosing(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.closing, func() { cancel(ErrClosed) })
	return out, func() {
		stop()
		cancel(context.Canceled)
	}
}

// throttled returns a function that reports attempts that were throttled, or in conflict.
func (c *Client) throttled(ctx context.Context, key protocol.Key, token int64) func(error) {
	return func(err error) {
		c.Listener.Throttled(ctx, Event{Key: key, Token: token, Requests: 1, Err: err})
	}
}
