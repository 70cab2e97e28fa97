package acquire

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/localqueue"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// LocalQueues are the queues in memory in which a client's goroutines wait for keys.
type LocalQueues = localqueue.Queues[Caller, Holding]

type (
	place = localqueue.Waiter[Caller, Holding]
	turn  = localqueue.Turn[Caller, Holding]
)

// Caller is a call that waits for a key.
type Caller struct {
	Ctx  context.Context // context of the call; only its values are used
	Want *Want
}

// handOvers is how many times in a row a release may hand the key to the next goroutine of
// this client, before other processes get a chance.
const handOvers = 16

// newLocalQueues returns empty queues. pollMin and pollMax are the bounds of the pauses
// between polls of other processes.
func newLocalQueues(pollMin, pollMax time.Duration) *LocalQueues {
	return localqueue.New[Caller, Holding](handOvers, pollMin, pollMax)
}

// newPlace returns a place for the local queue of a key; Join puts the place into the queue.
// The place's turn is sent on turns, or on a channel of its own if turns is nil.
func (c *Acquirer) newPlace(ctx context.Context, want *Want, turns chan turn) *place {
	wishes := localqueue.Wishes{NoWait: want.NoWait, SeeksItself: want.OneOfSeveral || !want.Once.None()}
	return c.Local.NewWaiter(want.Key, Caller{ctx, want}, wishes, turns)
}

// awaitTurn waits in the local queue of a key until the call's turn comes. began is when
// the call began.
func (c *Acquirer) awaitTurn(ctx context.Context, want *Want, began decide.Instant) (turn, error) {
	if c.Local.Take(want.Key) {
		return turn{}, nil // the turn comes at once, as no other waiter is ahead
	}
	p := c.newPlace(ctx, want, nil)
	c.Local.Join(p)
	if holder := c.Local.Holder(want.Key); holder != nil {
		c.reportInPlace(ctx, p, holder)
	}
	var ended error
	var late <-chan time.Time
	if want.NoWait {
		timer := time.NewTimer(began.Add(TryFor).Mono - c.Now().Mono)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case given := <-p.Turn():
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
	holder := c.Local.LastHolder(want.Key)
	if given, had := c.Local.Leave(p); had {
		refused := make(chan struct{})
		c.Detach(func() { defer close(refused); c.refuse(given) })
		if want.Manual { // waits, as the process may be frozen after the call; see call.cleanUp
			c.AwaitGrace(refused)
		}
	}
	return turn{}, c.ended(want, holder, ended, nil)
}

// reportInPlace reports that a caller waits for holder. If the listener panics, the call
// ends. In that case reportInPlace gives up the caller's place, and passes on the turn if
// it has come.
func (c *Acquirer) reportInPlace(ctx context.Context, p *place, holder *protocol.Record) {
	reported := false
	defer func() {
		if reported {
			return
		}
		c.Detach(func() {
			if given, had := c.Local.Leave(p); had {
				c.refuse(given)
			}
		})
	}()
	c.Listener.Report(ctx, core.Event{Kind: core.Waiting, Key: p.Key, Holder: holder})
	reported = true
}

// refuse passes on a turn whose caller has left.
func (c *Acquirer) refuse(given turn) {
	if given.Granted != nil {
		given.Granted.GiveBack()
		return
	}
	c.Local.Pass(given.Of.Key, nil)
}
