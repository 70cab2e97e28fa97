// Package setup has the commands that set up and try out: table, local, demo and
// version.
//
//	table.go      table; rewrite.go: table rewrite
//	local.go      local, which serves the embedded engine
//	demo.go       demo, whose play is package demo
//	version.go    version
package setup

import "github.com/leasehold-go/leasehold/internal/cli/invocation"

// command is one run of a command here.
type command struct{ *invocation.Invocation }
