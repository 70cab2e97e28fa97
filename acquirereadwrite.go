package leasehold

import (
	"context"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/seek"
)

// AcquireRead acquires key for reading, together with other readers. It waits
// while a writer holds the key or waits for it, and while 100 readers hold it.
// Package rwlock binds a key to it.
//
// A key is either for Acquire or for AcquireRead and AcquireWrite: the first grant
// makes its record, and calls of the other kind return a *RecordError. The error
// matches errors.ErrUnsupported for any layout but layout.Native, for options that
// set data or attributes, and for DeleteOnRelease. If ctx belongs to a lock of the
// key the error is ErrDeadlock, unless Reentrant is given, which shares that
// grant, also a writer's. Otherwise it is as Acquire.
func (c *Client) AcquireRead(ctx context.Context, key string, opts ...AcquireOption) (*Lock, error) {
	return c.acquireSide(ctx, key, protocol.ModeRead, opts)
}

// AcquireWrite acquires key for writing, alone. It waits until neither a writer nor
// a reader holds it, and keeps new readers out meanwhile. Tokens grow with every
// grant, those of readers included. If ctx belongs to a lock of the key the error
// is ErrDeadlock; Reentrant shares the grant of a writer, never that of a reader.
// Otherwise it is as AcquireRead.
func (c *Client) AcquireWrite(ctx context.Context, key string, opts ...AcquireOption) (*Lock, error) {
	return c.acquireSide(ctx, key, protocol.ModeWrite, opts)
}

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
