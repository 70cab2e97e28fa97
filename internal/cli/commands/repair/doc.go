// Package repair has the commands that an operator mends with: break, forget and
// semaphore.
//
//	break.go      break; breakdead.go: --dead; damaged.go: --damaged
//	forget.go     forget; forgetdone.go: --done
//	semaphore.go  semaphore resize
//
// Whether a holder is dead is not decided here, but in package holders.
package repair

import "github.com/leasehold-go/leasehold/internal/cli/invocation"

// command is one run of a command here.
type command struct{ *invocation.Invocation }
