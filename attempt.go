package leasehold

import (
	"context"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// throttled emits the events of attempts for key that were throttled, or in conflict.
func (c *Client) throttled(ctx context.Context, key Key, token int64) func(error) {
	return func(err error) {
		c.emit(ctx, Event{Kind: EventThrottled, Key: key, Token: token, Requests: 1, Err: err})
	}
}

// decode reads an item as a record of key.
func (c *Client) decode(key Key, item protocol.Item) (Record, error) {
	r, err := c.observer.Decode(protocol.Key(key), item)
	if err != nil {
		return Record{}, err
	}
	return recordOf(r), nil
}
