//go:build unix

package process

import (
	"errors"
	"os"
	"time"
)

// parent is the process that started this one. It is read when the program begins: if it
// ends later, the process that adopts orphans becomes the parent.
var parent = os.Getppid()

// parentEvery is how often the parent is checked. A signal at its death (PR_SET_PDEATHSIG)
// would be sent at the end of one of its threads, and only on Linux.
const parentEvery = 250 * time.Millisecond

// ParentEnd returns a channel that is closed when the process that started this one has
// ended. It returns an error if this process is a child of init, since it may already be an
// orphan. A process that another process adopted before this program began cannot be
// distinguished from a child of that process.
func ParentEnd() (<-chan struct{}, error) {
	if parent <= 1 { // zero means that the parent is outside this container
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
