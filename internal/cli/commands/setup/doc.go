// Package setup has the commands to set up and try out: table, local and demo.
//
//	table.go      table; rewrite.go: table rewrite
//	local.go      local, which serves the embedded engine
//	demo.go       demo, which package demo runs
package setup

import "github.com/leasehold-go/leasehold/internal/cli/invocation"

// Commands makes the commands of this package, for one invocation.
type Commands struct{ *invocation.Invocation }
