package acquire

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/localqueue"
)

// LocalQueues contains the local queues of a client: one queue in memory for each key, in
// which the client's goroutines wait.
type LocalQueues = localqueue.Queues[Caller, Holding]

type (
	place = localqueue.Waiter[Caller, Holding]
	turn  = localqueue.Turn[Caller, Holding]
)

// Caller is a call that waits in the local queue of a key.
type Caller struct {
	Ctx  context.Context // context of the call; only its values are used
	Want *Want
}

// handOvers is how many times in a row a client may hand a key to its own next goroutine.
// After that it frees the key, so that other processes can acquire it.
const handOvers = 16

// newPlace returns a new place, which is the entry of a call in the local queue of a key.
// Join adds the place to the queue. When the place is first in the queue, its turn is sent
// on turns, or on a channel of its own if turns is nil.
func (c *Acquirer) newPlace(ctx context.Context, want *Want, turns chan turn) *place {
	wishes := localqueue.Wishes{NoWait: want.NoWait, NoHandOver: want.OneOfSeveral || !want.Once.None()}
	return c.Local.NewWaiter(want.Key, Caller{ctx, want}, wishes, turns)
}

// awaitTurn waits in the local queue of a key until the call is first there, or another
// goroutine hands the key to the call. began is the time when the call began.
func (c *Acquirer) awaitTurn(ctx context.Context, want *Want, began decide.Instant) (turn, error) {
	if c.Local.Take(want.Key) {
		return turn{}, nil // no other call of this client waits for the key or holds it
	}
	p := c.newPlace(ctx, want, nil)
	c.Local.Join(p)
	hasTurn := false
	var ended error // reason why the caller stops waiting; still nil in the deferred function if the listener panics
	defer func() {
		if !hasTurn {
			c.leavePlace(p, want.Manual && ended != nil)
		}
	}()
	if holder := c.Local.Holder(want.Key); holder != nil {
		c.Listener.Report(ctx, core.Event{Kind: core.Waiting, Key: want.Key, Holder: holder})
	}
	var late <-chan time.Time
	if want.NoWait {
		timer := time.NewTimer(began.Add(TryFor).Mono - c.Now().Mono)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case given := <-p.Turn():
		hasTurn = true
		return given, nil
	case holder := <-p.Held():
		return turn{}, c.Errors.Held(want.Key, *holder, nil)
	case <-ctx.Done():
		ended = attempts.Cause(ctx)
	case <-c.Closing().Done():
		ended = attempts.Cause(c.Closing())
	case <-late:
		ended = fmt.Errorf("gave up after %v behind another call that had no answer from DynamoDB", c.since(began))
	}
	return turn{}, c.ended(want, c.Local.LastHolder(want.Key), ended, nil)
}

// leavePlace removes a place from the local queue. If the turn of the place has been sent, but
// the call has not received it, leavePlace passes the turn to the next place. If another
// goroutine has handed the key to the place, leavePlace releases the key. If waits is true,
// leavePlace waits until that is done, but no longer than the client's ReleaseGrace. The
// process may be frozen after the call, as cleanUp describes.
func (c *Acquirer) leavePlace(p *place, waits bool) {
	given, had := c.Local.Leave(p)
	if !had {
		return
	}
	passed := c.detached(func() {
		if given.Granted != nil {
			c.keeper.GiveBack([]Holding{given.Granted})
			return
		}
		c.Local.Pass(p.Key, nil)
	})
	if waits {
		c.AwaitGrace(passed)
	}
}
