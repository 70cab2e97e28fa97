//go:build unix

package ownrights

import (
	"os"
	"syscall"
)

func init() {
	if syscall.Getuid() == syscall.Geteuid() && syscall.Getgid() == syscall.Getegid() {
		return
	}
	_, _ = os.Stderr.WriteString("leasehold: it was started with the rights of another user (set-user-ID or set-group-ID), and would run any program with them: " +
		"remove that bit (chmod ug-s), and let sudo(8) say who may run what\n")
	os.Exit(NotRun)
}
