package leasehold

import (
	"context"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/seek"
)

// attempt is one write sent once. Its version is never used again.
type attempt struct {
	seek.Attempt
	handsOver bool // it hands the key over to the next in our own line
}

func (c *Client) newAttempt(lease time.Duration) attempt {
	return attempt{Attempt: c.seek.Attempt(lease, nil)}
}

// write sends w once, and does not retry. It goes on after ctx has ended.
func (c *Client) write(ctx context.Context, w *protocol.Write) attempts.Reply {
	return c.requests.Write(context.WithoutCancel(ctx), w, attempts.Limit)
}

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
