package leasehold

import (
	"context"

	"github.com/leasehold-go/leasehold/internal/bridge"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/seek"
)

func init() { bridge.AcquireSide = (*Client).acquireSide }

// acquireSide acquires key as a reader or as the writer. Package rwlock is its door, and
// documents it.
func (c *Client) acquireSide(ctx context.Context, key string, mode protocol.Mode, opts []AcquireOption) (*Lock, error) {
	rw, ok := c.proto.(protocol.ReadWriting)
	if !ok {
		return nil, c.unsupported("read/write locks")
	}
	want, err := c.completeRequest(request{Want: seek.Want{Key: protocol.Key{Partition: key}, Timing: c.timing, Mode: mode}}, opts)
	if err != nil {
		return nil, err
	}
	want.Side = rw.ReadWrite(mode, want.NoWait)
	return c.acquireOne(ctx, &want)
}
