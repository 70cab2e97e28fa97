// Package repair has the commands for repairs by an operator: break and forget.
//
//	break.go   break, also of a damaged record
//	forget.go  forget
//
// Package holders decides whether a holder is dead.
package repair

import "github.com/leasehold-go/leasehold/internal/cli/invocation"

// Commands makes the commands of this package, for one invocation.
type Commands struct{ *invocation.Invocation }
