package leasehold

import (
	"context"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// The most items of one transaction.
const maxTransact = attempts.MaxTransact

// transactUntil sends writes as one transaction, once, and waits for its answer
// no longer than ctx lasts.
func (c *Client) transactUntil(ctx context.Context, writes []*protocol.Write, within time.Duration) (decide.Transaction, error) {
	return c.requests.Transact(ctx, writes, within)
}

// readAll reads the records of keys consistently, by as few requests as it
// takes, and says how many those were. A key without a record has no item. It
// ends with ctx.
func (c *Client) readAll(ctx context.Context, keys []Key) (map[Key]protocol.Item, int, error) {
	ask := make([]protocol.Key, len(keys))
	for i, key := range keys {
		ask[i] = protocol.Key(key)
	}
	found, requests, err := c.requests.ReadAll(ctx, ask)
	items := make(map[Key]protocol.Item, len(found))
	for key, item := range found {
		items[Key(key)] = item
	}
	return items, requests, err
}
