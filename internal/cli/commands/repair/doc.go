// Package repair has the commands that an operator mends with: break and forget.
//
//	break.go   break, also of a record that does not read as a lock
//	forget.go  forget
//
// Whether a holder is dead is not decided here, but in package holders.
package repair

import "github.com/leasehold-go/leasehold/internal/cli/invocation"

// command is one run of a command here.
type command struct{ *invocation.Invocation }
