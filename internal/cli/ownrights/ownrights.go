// Package ownrights ends a process that runs with the rights of another user, for example
// because of a set-user-ID bit. Otherwise the user who started the process could choose, by
// arguments and variables, how leasehold run uses those rights. The check runs while the
// program's packages are initialized, before any package that reads arguments or variables.
package ownrights

import "os"

// NotRun is the exit code of leasehold if it did not run CMD. A process that was started to
// become CMD also exits with this code if it did not become CMD. In both cases nothing was
// done.
const NotRun = 125

// On Windows all of these ids are -1, because Windows has no such rights.
func init() {
	if os.Getuid() == os.Geteuid() && os.Getgid() == os.Getegid() {
		return
	}
	_, _ = os.Stderr.WriteString("leasehold: it was started with the rights of another user (set-user-ID or set-group-ID), and would run any program with them: " +
		"remove that bit (chmod ug-s), and let sudo(8) say who may run what\n")
	os.Exit(NotRun)
}
