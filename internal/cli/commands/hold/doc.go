// Package hold has the commands that hold keys: run, elect, acquire, renew and release.
//
//	run.go    run: acquires the keys, holds them while CMD runs, and releases them; elect and acquire
//	          share the flags about the hold
//	elect.go  elect, also with --watch and --step-down
//	grant.go  acquire, renew, release: a grant outlives the command
//
// Package holding determines how a key is held, and package process how CMD runs and ends.
package hold

import "github.com/leasehold-go/leasehold/internal/cli/invocation"

// Commands makes the commands of this package, for one invocation.
type Commands struct{ *invocation.Invocation }
