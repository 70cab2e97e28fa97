// Package ownrights ends this process if a set-user-ID or set-group-ID bit of leasehold's
// file gives the process the rights of another user or group. Otherwise the user who starts
// leasehold could run any program with those rights, through "leasehold run". The check runs
// in an init function, before any package reads arguments or environment variables.
package ownrights

import "os"

// NotRun is leasehold's exit code if leasehold did not run CMD. It is also the exit code of
// the child process that should become CMD (package atgate), if the child could not become
// CMD. In both cases, no code of CMD has run.
const NotRun = 125

// On Windows, all four ids are -1 and thus equal: Windows has no set-user-ID bit.
func init() {
	if os.Getuid() == os.Geteuid() && os.Getgid() == os.Getegid() {
		return
	}
	_, _ = os.Stderr.WriteString("leasehold: it was started with the rights of another user (set-user-ID or set-group-ID), and would run any program with them: " +
		"remove that bit (chmod ug-s), and let sudo(8) say who may run what\n")
	os.Exit(NotRun)
}
