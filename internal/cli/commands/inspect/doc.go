// Package inspect has the commands that look and change nothing: ls, get, ui and doctor.
//
//	list.go       ls
//	get.go        get
//	ui.go         ui, which serves package ui
//	doctor.go     doctor, which asks package checks
package inspect

import "github.com/leasehold-go/leasehold/internal/cli/invocation"

// command is one run of a command here.
type command struct{ *invocation.Invocation }
