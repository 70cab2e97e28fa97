// Package hold has the commands that hold keys: run, elect, acquire, renew and release.
//
//	run.go        run; its flags, which elect and acquire share
//	wanted.go     run of more keys than one, --every and --once
//	elect.go      elect; leader.go: --watch and --step-down
//	grant.go      acquire, renew, release: a grant outlives the command
//
// Package holding determines how a key is held, and package process how CMD runs and ends.
package hold

import "github.com/leasehold-go/leasehold/internal/cli/invocation"

// command is one invocation of a command of this package.
type command struct{ *invocation.Invocation }
