// Package bridge gives the packages election and holders access to internals of the root
// package that users should not have. The root package sets the variables of this package
// during its own initialization.
package bridge

import (
	"context"

	"github.com/leasehold-go/leasehold/internal/acquire"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Client is the interface to the internals of a *leasehold.Client.
type Client interface {
	Env() *core.Env

	// Session returns the session for new grants, and begins one if no session is trusted.
	Session(ctx context.Context) (acquire.Session, error)

	// OnAsked registers fn, to be called once when the holder of a *leasehold.Lock is asked
	// to step down. It returns false if lock is not this client's lock of key.
	OnAsked(lock any, key protocol.Key, fn func()) bool

	// Unsupported returns the error of a feature that the layout lacks.
	Unsupported(feature string) error
}

// Inside returns the internals of a *leasehold.Client.
var Inside func(client any) Client

// Record converts a record to a leasehold.Record. Only the root package can set all fields
// of a leasehold.Record.
var Record func(protocol.Record) any
