package process

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/leasehold-go/leasehold/internal/cli/watchdog"
)

// Windows has no signals except Ctrl-C, and no process groups that can receive signals. So
// leasehold can only kill CMD itself, without a grace.

// Caught are the signals that CatchSignals catches.
var Caught = []os.Signal{os.Interrupt, syscall.SIGTERM}

func endsWait(os.Signal) bool { return true }

func stopsJob(os.Signal) bool { return false }

// stopSelf does nothing.
func stopSelf() {}

// StopSignal and ContinueSignal do not exist on Windows.
const (
	StopSignal     = syscall.Signal(0)
	ContinueSignal = syscall.Signal(0)
)

// awaitSent does nothing.
func awaitSent() {}

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

// SignalName returns the name of a signal.
func SignalName(sig syscall.Signal) string { return sig.String() }

func ownSession() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

func ownGroup() *syscall.SysProcAttr { return ownSession() }

// startAtGate starts CMD without a gate, as a Windows process cannot become another
// program. CMD survives if leasehold is killed before it has sent CMD's group to the
// watchdog.
func startAtGate(_ string, cmd *exec.Cmd) (*Child, *gate, error) {
	c, err := Start(cmd)
	return c, noGate(), err
}

// waitUnlessStopped waits until a child process has ended. On Windows no child can be
// stopped.
func waitUnlessStopped(p *os.Process) { _, _ = p.Wait() }

func (c *Child) await() (stopped bool, sig syscall.Signal) {
	if state, err := c.cmd.Process.Wait(); err == nil {
		status := state.Sys().(syscall.WaitStatus)
		c.status = &status
	}
	return false, 0
}

// PassOn kills CMD: Windows has no other signal to send.
func (c *Child) PassOn(os.Signal) { _ = watchdog.KillGroup(c.group(), syscall.SIGKILL) }

// WasStopped is never called on Windows.
func (c *Child) WasStopped(syscall.Signal) {}

type terminal struct{}

func (*terminal) takeBack() {}

func exitCode(status syscall.WaitStatus) int { return status.ExitStatus() }

// ParentEnd returns a channel that is closed when the process that started this one has
// ended. It returns an error if that process had already ended before the call.
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
