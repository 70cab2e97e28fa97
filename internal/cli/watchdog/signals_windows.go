package watchdog

import (
	"errors"
	"os"
	"syscall"
)

// KillGroup kills the process with the given id, which is CMD. Windows cannot signal a
// process group, and has no signal but SIGKILL. For any other sig, KillGroup returns
// errors.ErrUnsupported.
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
