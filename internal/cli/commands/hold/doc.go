// Package hold has the commands that hold keys: run, elect, acquire, renew and release.
//
//	run.go        run; its flags, which elect and acquire share
//	wanted.go     run of more keys than one, --every and --once
//	elect.go      elect; leader.go: --watch and --step-down
//	grant.go      acquire, renew, release: a grant outlives the command
//
// What becomes of a key while it is held is in package holding, what becomes of CMD in
// package process.
package hold

import "github.com/leasehold-go/leasehold/internal/cli/invocation"

// command is one run of a command here.
type command struct{ *invocation.Invocation }
