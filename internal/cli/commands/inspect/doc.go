// Package inspect has the commands that only read: ls, get, ui and doctor.
//
//	list.go       ls
//	get.go        get
//	ui.go         ui, which serves package ui
//	doctor.go     doctor, with the checks of package checks
package inspect

import "github.com/leasehold-go/leasehold/internal/cli/invocation"

// Commands makes the commands of this package, for one invocation.
type Commands struct{ *invocation.Invocation }
