// Package bridge gives packages election and holders access to internals of the root
// package leasehold that are not in the public API. The root package sets the variables of
// package bridge during its own initialization.
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

	// Session returns the client's session, which is the lease that all locks of the client share.
	// If there is no session, or the client no longer trusts it, Session begins a new one. Session
	// returns nil if the client's locks do not share a lease.
	Session(ctx context.Context) (acquire.Session, error)

	// OnAsked registers fn, and returns true. The client calls fn once, when another client asks
	// the holder of lock to step down. If lock is not a *leasehold.Lock of this client for key,
	// OnAsked registers nothing, and returns false.
	OnAsked(lock any, key protocol.Key, fn func()) bool

	// Unsupported returns the error for a call that needs a feature that the client's layout
	// does not have.
	Unsupported(feature string) error
}

// Inside returns the internals of client, which must be a *leasehold.Client.
var Inside func(client any) Client

// Record converts a protocol.Record to a leasehold.Record. It is a variable because only the
// root package can set all fields of a leasehold.Record.
var Record func(protocol.Record) any
