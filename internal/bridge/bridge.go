// Package bridge gives packages election and holders access to internals of the root
// package leasehold that are not in the public API. The root package sets the variables of
// package bridge during its own initialization.
package bridge

import (
	"github.com/leasehold-go/leasehold/internal/hold"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Holds returns the hold.Holds of client, which contains the client's locks and its Env. The
// argument must be a *leasehold.Client.
var Holds func(client any) *hold.Holds

// Grant returns the grant of lock, which must be a *leasehold.Lock. It returns nil if lock is
// nil, or if it is not a lock of client.
var Grant func(client, lock any) *hold.Lock

// Record converts a protocol.Record to a leasehold.Record. It is a variable because only the
// root package can set all fields of a leasehold.Record.
var Record func(protocol.Record) any
