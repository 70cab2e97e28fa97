package watchdog

import (
	"slices"
	"syscall"
	"time"
)

// Descent is what descends from CMD: its process group and, on Linux, every
// process that CMD and its children have started, in whatever session. There an
// orphan of theirs becomes a child of the supervisor, not of init
// (PR_SET_CHILD_SUBREAPER), so that none gets lost.
type Descent struct {
	Supervisor int    // its children are CMD, orphans, and the watchdog
	Watchdog   int    // 0: it is not a process of its own
	Held       string // begins a variable that only the environment of CMD has, NAME=VALUE; empty: not known
	Began      int64  // when CMD began (Began), to tell it from another with its number; 0: not known
	GroupOnly  bool   // those outside CMD's group may live on without the lock
}

// Process is a process that CMD has started.
type Process struct {
	PID      int    // of a group, if its processes are not known
	Name     string // of its program; empty: not known
	Direct   bool   // a child of the supervisor: CMD, or an orphan
	Dead     bool   // a zombie
	Whole    bool   // stands for all processes of its group
	group    int
	began    int64 // in the kernel's units
	headless bool  // its first thread has ended, but others run
}

// Killing is repeated, as processes may be born meanwhile: every killPause, but
// not for longer than it takes to see that some cannot be killed.
const (
	killPause = 5 * time.Millisecond
	killTries = 100
)

// Signal sends a signal to CMD's group and to the groups of orphans. Groups below
// those are left to their leaders, as at any other time: a leasehold among them
// passes it on. SIGKILL goes to every process.
func (d Descent) Signal(group int, sig syscall.Signal) {
	if d.isGroup(group) {
		_ = KillGroup(group, sig) // one that has ended needs no signal
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

// isGroup reports whether the group is CMD's, or nobody's. When the supervisor has died
// while the watchdog stood still, CMD has been reaped, and another process may have its
// number; while any of CMD's group runs, the kernel gives the number to nobody.
func (d Descent) isGroup(group int) bool {
	now := Began(group)
	return d.Began == 0 || now == 0 || now == d.Began
}

// kill kills until none is left. Of a supervisor that has died nobody descends
// any more: then the environment tells who belongs to CMD.
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
