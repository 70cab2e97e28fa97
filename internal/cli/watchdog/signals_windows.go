package watchdog

import (
	"errors"
	"os"
	"syscall"
)

// KillGroup kills CMD alone, as Windows cannot signal a process group. It returns an error
// for any signal but SIGKILL, as Windows has no other signal.
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
