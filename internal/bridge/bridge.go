// Package bridge is how the packages election and holders reach what the root has inside.
// Leaders who are asked to step down and onlookers need more of it than users may have. The
// root sets what is here when it is initialized, which is before the packages that import it.
package bridge

import "github.com/leasehold-go/leasehold/internal/protocol"

// Inside returns the internals of a *leasehold.Client. Its caller declares the interface
// that it needs of them: the methods name types of the root, which imports this package.
var Inside func(client any) any

// Record returns the leasehold.Record of a record: only the root can fill in all of it.
var Record func(protocol.Record) any
