//go:build !linux

package watchdog

import "syscall"

// SeesDescent is false on this operating system: leasehold sees only the processes in CMD's
// process group. It cannot find other descendants, because a descendant whose parent has ended
// becomes a child of init.
const SeesDescent = false

func (Process) kill() {}

// Began returns 0, because leasehold cannot find out when a process began on this operating
// system.
func Began(int) int64 { return 0 }

// All returns one Process that represents all processes of CMD's group, or none if the group is
// empty. A CMD that has ended is not in the group, because leasehold reaps it immediately. On
// Windows, All returns none, because Windows cannot signal a process group.
func (d Descent) All(group int) ([]Process, error) {
	if err := KillGroup(group, 0); err != nil && err != syscall.EPERM {
		return nil, nil //nolint:nilerr // the group has no processes
	}
	return []Process{{PID: group, Group: group, Whole: true}}, nil
}

func withEnvironment(string) []Process { return nil }
