package leasehold

import (
	"context"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// AcquireRead acquires key for reading, together with other readers. It waits
// while a writer holds the key or waits for it, and while 100 readers hold it.
// Package rwlock binds a key to it.
//
// Such a key is not one of Acquire: whichever comes first makes the record, and
// the other returns a *RecordError. The error matches errors.ErrUnsupported if
// the layout is not layout.Native, for options that set data or attributes, and
// for DeleteOnRelease. Inside the context of a lock of this key it is
// ErrDeadlock, unless Reentrant is given, which shares that grant, a writer's
// too. All else is as in Acquire.
func (c *Client) AcquireRead(ctx context.Context, key string, opts ...AcquireOption) (*Lock, error) {
	return c.acquireSide(ctx, key, protocol.ModeRead, opts)
}

// AcquireWrite acquires key for writing, alone. It waits until the writer before
// and every reader have gone, and keeps new readers out meanwhile. Tokens grow
// with every grant, of readers too. Inside the context of a lock of this key it
// is ErrDeadlock; Reentrant shares the grant of a writer, never that of a
// reader. All else is as in AcquireRead.
func (c *Client) AcquireWrite(ctx context.Context, key string, opts ...AcquireOption) (*Lock, error) {
	return c.acquireSide(ctx, key, protocol.ModeWrite, opts)
}

func (c *Client) acquireSide(ctx context.Context, key string, mode protocol.Mode, opts []AcquireOption) (*Lock, error) {
	rw, ok := c.proto.(protocol.ReadWriting)
	if !ok {
		return nil, c.unsupported("read/write locks")
	}
	want, err := c.completeRequest(request{key: Key{Partition: key}, timing: c.timing, mode: mode}, opts)
	if err != nil {
		return nil, err
	}
	want.side = rw.ReadWrite(mode, want.noWait)
	return c.acquireOne(ctx, &want)
}
