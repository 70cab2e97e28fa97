package cli

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Windows has no signals except Ctrl-C, and no process groups that can be
// signalled: only CMD itself is killed, without a grace.

var caughtSignals = []os.Signal{os.Interrupt, syscall.SIGTERM}

func endsWait(syscall.Signal) bool { return true }

func stopsJob(os.Signal) bool { return false }

func stopSelf() {}

const continueSignal = syscall.Signal(0)

func signalNumber(name string) syscall.Signal {
	switch name {
	case "SIGINT":
		return syscall.SIGINT
	case "SIGTERM":
		return syscall.SIGTERM
	case "SIGKILL":
		return syscall.SIGKILL
	}
	return 0
}

func signalName(sig syscall.Signal) string { return sig.String() }

func killGroup(group int, sig syscall.Signal) error {
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

func ownSession() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

func ownGroup() *syscall.SysProcAttr { return ownSession() }

func ignoreSignals() {}

// startAtGate starts CMD without a gate, as a Windows process cannot become
// another: if leasehold is killed before it has told the watchdog, CMD survives.
func startAtGate(_ string, cmd *exec.Cmd) (*child, *gate, error) {
	c, err := startChild(cmd)
	return c, noGate(), err
}

func execWhenOpen(int, string, []string, []string) {}

func (c *child) await() (stopped bool, sig syscall.Signal) {
	if state, err := c.cmd.Process.Wait(); err == nil {
		status := state.Sys().(syscall.WaitStatus)
		c.status = &status
	}
	return false, 0
}

// passOn kills CMD: Windows has no other signal for it.
func (c *child) passOn(os.Signal) { _ = killGroup(c.group(), syscall.SIGKILL) }

func (c *child) wasStopped(syscall.Signal) {}

type terminal struct{}

func (*terminal) takeBack() {}

func exitCode(status syscall.WaitStatus) int { return status.ExitStatus() }

func bootClock() time.Duration { return time.Duration(time.Now().UnixNano()) }

func thisProgram() (string, error) { return os.Executable() }

// lockFile locks nothing: if two processes save observations at the same time,
// those of one are lost.
func lockFile(string) (unlock func(), err error) { return func() {}, nil }

// groupRuns: Windows has no groups, so what CMD leaves running is not seen.
func groupRuns(int) bool { return false }
