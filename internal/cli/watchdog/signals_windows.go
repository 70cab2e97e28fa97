package watchdog

import (
	"errors"
	"os"
	"syscall"
)

// KillGroup kills CMD itself, whatever the signal: Windows can signal no process group, and
// has no signal but kill.
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
