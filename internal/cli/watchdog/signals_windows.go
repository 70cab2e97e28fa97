package watchdog

import (
	"errors"
	"os"
	"syscall"
)

// KillGroup kills CMD alone, and ignores the choice of signal. Windows cannot signal a
// process group, and the only signal that it has is kill.
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
