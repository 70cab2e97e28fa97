package watchdog

import (
	"slices"
	"syscall"
	"time"
)

// Descent describes CMD's descendants: its process group and, on Linux, every process that
// CMD and its children have started, in any session. On Linux an orphaned descendant
// becomes a child of the supervisor instead of init (PR_SET_CHILD_SUBREAPER), so that none
// gets lost.
type Descent struct {
	Supervisor int    // its children are CMD, orphans, and the watchdog
	Watchdog   int    // zero if it is not a process of its own
	Held       string // prefix, NAME=VALUE, of a variable that only CMD's environment has; empty if unknown
	Began      int64  // when CMD began (Began), which distinguishes it from another process with its number; zero if unknown
	GroupOnly  bool   // processes outside CMD's group may continue without the lock
}

// Process is a process that CMD has started.
type Process struct {
	PID      int    // a process group if its processes are not known
	Name     string // program name; empty if unknown
	Direct   bool   // a child of the supervisor: CMD, or an orphan
	Dead     bool   // a zombie
	Whole    bool   // represents all processes of its group
	group    int
	began    int64 // in the kernel's units
	headless bool  // its first thread has ended, but others run
}

// Killing is repeated, as processes may be born meanwhile: every killPause, but only long
// enough to see that some cannot be killed.
const (
	killPause = 5 * time.Millisecond
	killTries = 100
)

// Signal sends a signal to CMD's group and to the groups of orphans. Other groups are left
// to their leaders, as in normal operation: a leasehold among them passes the signal on.
// SIGKILL is sent to every process.
func (d Descent) Signal(group int, sig syscall.Signal) {
	if d.isGroup(group) {
		_ = KillGroup(group, sig) // an ended group needs no signal
	}
	if d.GroupOnly || !SeesDescent {
		return
	}
	if sig == syscall.SIGKILL {
		d.kill(group)
		return
	}
	all, _ := d.All(group)
	groups := []int{group}
	for _, p := range all {
		if p.Direct && !p.Dead && !slices.Contains(groups, p.group) {
			groups = append(groups, p.group)
			_ = KillGroup(p.group, sig)
		}
	}
}

// isGroup reports whether the group is CMD's or does not exist. If the supervisor has died
// while the watchdog was stopped, CMD has been reaped, and another process may have its
// number. While any process of CMD's group runs, the kernel does not reuse the number.
func (d Descent) isGroup(group int) bool {
	now := Began(group)
	return d.Began == 0 || now == 0 || now == d.Began
}

// kill kills until no process is left. A dead supervisor has no descendants: the
// environment then identifies CMD's processes.
func (d Descent) kill(group int) {
	for range killTries {
		all, _ := d.All(group)
		if d.Held != "" {
			all = append(all, withEnvironment(d.Held)...)
		}
		left := 0
		for _, p := range all {
			if !p.Dead {
				left++
				p.kill()
			}
		}
		if left == 0 {
			return
		}
		time.Sleep(killPause)
	}
}
