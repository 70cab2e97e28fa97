// Package hold has the commands that hold keys: run, elect, acquire, renew and release.
//
//	run.go        run; its flags, which elect and acquire share
//	several.go    run of more keys than one; permits.go: of one of N permits
//	once.go       run --every and --once
//	elect.go      elect; leader.go: elect --watch; probes.go: --http; stepdown.go: --step-down
//	stepwait.go   who is waited for until it has stepped down
//	acquire.go    acquire, renew.go, release.go: a grant outlives the command
//	grant.go      reads the grant of a file
//
// What becomes of a key while it is held is in package holding, what becomes of CMD in
// package process.
package hold

import "github.com/leasehold-go/leasehold/internal/cli/invocation"

// command is one run of a command here.
type command struct{ *invocation.Invocation }
