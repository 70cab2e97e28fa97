// Package repair has the commands for repairs by an operator: break and forget.
//
//	break.go   break, also of a damaged record
//	forget.go  forget
//
// Package holders decides whether a holder is dead.
package repair

import "github.com/leasehold-go/leasehold/internal/cli/invocation"

// command is one invocation of a command of this package.
type command struct{ *invocation.Invocation }
