// Package recipe is the door between package leasehold and the recipes of this
// module, for what they need of a client and its users do not. It keeps such
// things out of the public surface, as internal packages of grpc-go do.
package recipe

import (
	"context"
	"time"
)

// Client is a *leasehold.Client as the recipes see it. Keys and records are
// those of package protocol.
type Client interface {
	// CheckReadWrite says whether the client can take key as a read/write lock.
	CheckReadWrite(key string) error

	// AcquireReadWrite acquires key for reading or writing. opts is a
	// []leasehold.AcquireOption, what it returns a *leasehold.Lock.
	AcquireReadWrite(ctx context.Context, key string, write bool, opts any) (any, error)

	// SetClocks puts clocks in the place of the client's own: the time since
	// some origin, by the monotonic clock and by the one that runs on in
	// suspend. It is for a client that nobody uses yet.
	SetClocks(now func() (mono, boot time.Duration))
}

// Of returns the inner side of a *leasehold.Client. Package leasehold sets it.
var Of func(client any) Client
