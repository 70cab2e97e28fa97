package watchdog

import (
	"errors"
	"os"
	"syscall"
)

// KillGroup kills CMD itself: Windows has no process groups that can receive signals, and
// no other signal.
func KillGroup(group int, sig syscall.Signal) error {
	if sig != syscall.SIGKILL {
		return errors.ErrUnsupported
	}
	p, err := os.FindProcess(group)
	if err != nil {
		return err
	}
	defer func() { _ = p.Release() }()
	return p.Kill()
}

func ignoreSignals() {}
