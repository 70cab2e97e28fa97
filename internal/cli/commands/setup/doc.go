// Package setup has the commands to set up and try out: table, local, demo and version.
//
//	table.go      table; rewrite.go: table rewrite
//	local.go      local, which serves the embedded engine
//	demo.go       demo, which package demo runs
//	version.go    version
package setup

import "github.com/leasehold-go/leasehold/internal/cli/invocation"

// command is one invocation of a command of this package.
type command struct{ *invocation.Invocation }
