package semaphore

import (
	"context"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/seek"
)

// inside is what a semaphore needs of what is inside a client.
type inside interface {
	// Seeking has the client's requests, records, clocks, pauses and listener.
	Seeking() *seek.Client

	// Asked is what the options ask for.
	Asked(key leasehold.Key, opts []leasehold.AcquireOption) (want seek.Want, reentrant bool, err error)

	// CheckRequest refuses options that a lock of the key cannot be acquired with.
	CheckRequest(key leasehold.Key, opts []leasehold.AcquireOption) error

	// Share returns another handle on the first of the keys that ctx belongs to a plain
	// lock of; nil: there is none.
	Share(ctx context.Context, keys []leasehold.Key, opts []leasehold.AcquireOption) (*leasehold.Lock, error)

	// Enter counts a call that Close waits for: until ends with ctx, and with ErrClosed
	// when the client closes. Not ok: it has been closed.
	Enter(ctx context.Context) (until context.Context, leave func(), ok bool)

	// RetryRead repeats a read for as long as a call that does not wait may take.
	RetryRead(ctx context.Context, op string, key leasehold.Key, read func(context.Context) error) error

	// Do acquires a lock, calls fn and releases it. An error from before fn was called
	// matches leasehold.ErrNotRun.
	Do(ctx context.Context, key leasehold.Key, acquire func() (*leasehold.Lock, error), fn func(context.Context, *leasehold.Lock) error) error

	// GaveUp tells of a call that ends without a grant, with one of these errors.
	GaveUp(ctx context.Context, key leasehold.Key, began decide.Instant, err error)

	// CheckPrefix refuses a key that the client may not use.
	CheckPrefix(key leasehold.Key) error
	Unsupported(feature string) error
	AfterClose(op string, key leasehold.Key) error
	Failed(op string, key leasehold.Key, err error) error
}
