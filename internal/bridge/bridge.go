// Package bridge gives the packages election and holders access to the inside of the root.
// Leaders that are asked to step down, and observers, need more of it than users may have.
// The root sets the variables here when it is initialized, before the packages that import it.
package bridge

import (
	"context"

	"github.com/leasehold-go/leasehold/internal/acquire"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Client is the inside of a *leasehold.Client.
type Client interface {
	Env() *core.Env

	// Session returns the session that the client grants under, and begins one if none is
	// trusted.
	Session(ctx context.Context) (acquire.Session, error)

	// OnAsked has fn called, once, if the holder of a *leasehold.Lock is asked to step down. It
	// returns false if that is no lock of key that this client was granted.
	OnAsked(lock any, key protocol.Key, fn func()) bool

	// Unsupported returns the error of a feature that the layout lacks.
	Unsupported(feature string) error
}

// Inside returns the inside of a *leasehold.Client.
var Inside func(client any) Client

// Record returns the leasehold.Record of a record: only the root can fill in all of it.
var Record func(protocol.Record) any
