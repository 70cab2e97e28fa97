package cli

import (
	"slices"
	"syscall"
	"time"
)

// descent is what descends from CMD: its process group and, on Linux, every
// process that CMD and its children have started, in whatever session. There an
// orphan of theirs becomes a child of the supervisor, not of init
// (PR_SET_CHILD_SUBREAPER), so that none gets lost.
type descent struct {
	supervisor int    // its children are CMD, orphans, and the watchdog
	watchdog   int    // 0: it is not a process of its own
	held       string // begins LEASEHOLD_HELD in the environment of CMD; empty: not known
	groupOnly  bool   // those outside CMD's group may live on without the lock
}

// process is a process that CMD has started.
type process struct {
	PID    int    `json:"pid"`            // of a group, if its processes are not known
	Name   string `json:"name,omitempty"` // of its program; empty: not known
	group  int
	direct bool // a child of the supervisor: CMD, or an orphan
	dead   bool // a zombie
	whole  bool // stands for all processes of its group
}

// Killing is repeated, as processes may be born meanwhile: every killPause, but
// not for longer than it takes to see that some cannot be killed.
const (
	killPause = 5 * time.Millisecond
	killTries = 100
)

// signal sends a signal to CMD's group and to the groups of orphans. Groups below
// those are left to their leaders, as at any other time: a leasehold among them
// passes it on. SIGKILL goes to every process.
func (d descent) signal(group int, sig syscall.Signal) {
	_ = killGroup(group, sig) // one that has ended needs no signal
	if d.groupOnly || !seesDescent {
		return
	}
	if sig == syscall.SIGKILL {
		d.kill(group)
		return
	}
	all, _ := d.all(group)
	groups := []int{group}
	for _, p := range all {
		if p.direct && !p.dead && !slices.Contains(groups, p.group) {
			groups = append(groups, p.group)
			_ = killGroup(p.group, sig)
		}
	}
}

// kill kills until none is left. Of a supervisor that has died nobody descends
// any more: then the environment tells who belongs to CMD.
func (d descent) kill(group int) {
	for range killTries {
		all, _ := d.all(group)
		if d.held != "" {
			all = append(all, withEnvironment(heldVariable+"="+d.held)...)
		}
		left := 0
		for _, p := range all {
			if !p.dead {
				left++
				killProcess(p.PID)
			}
		}
		if left == 0 {
			return
		}
		time.Sleep(killPause)
	}
}
