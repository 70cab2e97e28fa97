package leasehold

import (
	"context"

	"github.com/leasehold-go/leasehold/internal/line"
)

// In the lines of a client, calls wait for keys. A holding is the grant of a key.
type (
	lines      = line.Lines[Key, caller, *holding, Record]
	lineWaiter = line.Waiter[Key, caller, *holding, Record]
	turn       = line.Turn[Key, caller, *holding, Record]
)

// caller is a call that waits for a key.
type caller struct {
	ctx  context.Context // for its values
	want *request
}

func newLines(cfg Config) *lines {
	return line.New[Key, caller](line.Config[*holding, Record]{
		HandOvers: cfg.LocalHandOver, PollMin: cfg.PollMin, PollMax: cfg.PollMax,
		Age: (*holding).age, Ended: func(h *holding) bool { return h.lease.IsOver() }, Holder: (*holding).currentRecord,
	})
}

// newLineWaiter returns a waiter for the key of a request, which gets its turn on
// turns; nil: on a channel of its own.
func (c *Client) newLineWaiter(ctx context.Context, want *request, turns chan turn) *lineWaiter {
	wishes := line.Wishes{NoWait: want.noWait, OneOfSeveral: want.oneOfSeveral}
	return c.lines.NewWaiter(want.key, caller{ctx, want}, wishes, turns)
}
