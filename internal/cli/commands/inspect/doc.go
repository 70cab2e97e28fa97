// Package inspect has the commands that only read: ls, get, ui and doctor.
//
//	list.go       ls
//	get.go        get
//	ui.go         ui, which serves package ui
//	doctor.go     doctor, with the checks of package checks
package inspect

import "github.com/leasehold-go/leasehold/internal/cli/invocation"

// command is one invocation of a command of this package.
type command struct{ *invocation.Invocation }
