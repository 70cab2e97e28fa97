package process

import (
	"fmt"
	"os"
)

// ParentEnd returns a channel that is closed when the process that started this one has
// ended. It returns an error if that process has already ended.
func ParentEnd() (<-chan struct{}, error) {
	parent, err := os.FindProcess(os.Getppid())
	if err != nil {
		return nil, fmt.Errorf("--die-with-parent: cannot watch the process that started leasehold: %w: leave the flag out", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = parent.Wait() // on Windows, Wait also works for a process that is not a child
	}()
	return ended, nil
}
