// Package bridge gives the packages election and holders access to the internals of the
// root. Leaders that are asked to step down, and observers, need more of them than users
// may have. The root sets the variables here when it is initialized, before the packages
// that import it.
package bridge

import "github.com/leasehold-go/leasehold/internal/protocol"

// Inside returns the internals of a *leasehold.Client. Its caller declares the interface
// that it needs of them: the methods name types of the root, which imports this package.
var Inside func(client any) any

// Record returns the leasehold.Record of a record: only the root can fill in all of it.
var Record func(protocol.Record) any
