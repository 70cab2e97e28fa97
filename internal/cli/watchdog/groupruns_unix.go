//go:build unix && !linux

package watchdog

import "syscall"

// groupRuns reports whether a group has a process.
func groupRuns(group int) bool {
	err := syscall.Kill(-group, 0)
	return err == nil || err == syscall.EPERM
}
