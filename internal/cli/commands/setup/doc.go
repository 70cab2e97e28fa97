// Package setup has the commands to set up and try out: table, local and demo.
//
//	table.go      table; rewrite.go: table rewrite
//	local.go      local, which serves the embedded engine
//	demo.go       demo, which package demo runs
package setup

import "github.com/leasehold-go/leasehold/internal/cli/invocation"

// command is one invocation of a command of this package.
type command struct{ *invocation.Invocation }
