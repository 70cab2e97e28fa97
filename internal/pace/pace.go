// Package pace lets the processes of one machine take turns to read a key's record.
//
// Each waiter reads the record for itself, which is too much for one local file if they
// are many. Whoever knows of the others gives its call a turn: until that
// has come, the call reads it rarely, and from then on often. A turn changes pauses and
// nothing else: a waiter whose turn never comes is granted the key all the same, later.
package pace

import (
	"context"
	"time"
)

// The mean pauses between two readings.
const (
	Rare  = time.Second          // until the turn has come
	Often = 5 * time.Millisecond // after that, of a grant that is younger
)

type turn struct{}

// With returns a context for a call that waits. Its turn has come once turn is closed.
func With(ctx context.Context, of <-chan struct{}) context.Context {
	return context.WithValue(ctx, turn{}, of)
}

// Turn returns what With was given; nil: the call needs no turn.
func Turn(ctx context.Context) <-chan struct{} {
	of, _ := ctx.Value(turn{}).(<-chan struct{})
	return of
}
