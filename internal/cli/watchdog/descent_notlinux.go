//go:build !linux

package watchdog

import "syscall"

// SeesDescent is false. An orphan becomes a child of init, so the watchdog sees only
// processes in CMD's group.
const SeesDescent = false

func (Process) kill() {}

// Began returns 0, as leasehold cannot read the time on this system.
func Began(int) int64 { return 0 }

// All returns one Process that represents CMD's group if any process of the group runs. CMD
// itself was reaped when it ended. On Windows, All returns no process, since no signal can
// be sent to a group.
func (d Descent) All(group int) ([]Process, error) {
	if err := KillGroup(group, 0); err != nil && err != syscall.EPERM {
		return nil, nil //nolint:nilerr // there is no such group
	}
	return []Process{{PID: group, group: group, Whole: true}}, nil
}

func withEnvironment(string) []Process { return nil }
