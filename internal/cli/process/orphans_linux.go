package process

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

func notifyDeaths(c chan<- os.Signal) { signal.Notify(c, unix.SIGCHLD) }
func ignoreDeaths(c chan<- os.Signal) { signal.Stop(c) }

// adoptOrphans makes orphans of this process's descendants its children.
func adoptOrphans() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // exists since Linux 3.4, and Go requires 3.2: without it only CMD's group is seen
}

// reapOrphan reaps an ended child that this process has not started. Children that it has
// started are reaped by the code that waits for them.
func reapOrphan(pid int) { _, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) }
