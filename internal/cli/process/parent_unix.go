//go:build unix

package process

import (
	"errors"
	"os"
	"time"
)

// parent is the process that started this one, read when the program began: later it may
// have ended, and the process that adopts orphans is the parent.
var parent = os.Getppid()

// parentEvery is how often the end of the parent is looked for. A signal at its death
// (PR_SET_PDEATHSIG) would come at the end of a thread of it, and only on Linux.
const parentEvery = 250 * time.Millisecond

// ParentEnd returns a channel that is closed when the process that started this one has
// ended. It returns an error if this process is a child of init: then it may be an orphan
// already. One that was adopted by another process before this program began is not told
// from a child of that.
func ParentEnd() (<-chan struct{}, error) {
	if parent <= 1 { // 0: the parent is outside of this container
		return nil, errors.New("--die-with-parent: leasehold was started by init, or by a process that has ended already: " +
			"start it from the process that it is to end with, or leave the flag out")
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for os.Getppid() == parent {
			time.Sleep(parentEvery)
		}
	}()
	return ended, nil
}
