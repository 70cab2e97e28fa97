package process

import (
	"fmt"
	"os"
	"syscall"

	"github.com/leasehold-go/leasehold/internal/cli/watchdog"
)

// Windows has no signals except Ctrl-C, and no process groups that could receive a signal.
// So to stop CMD, leasehold kills CMD immediately, without a grace period. It does not kill
// CMD's children.

// Caught lists the signals that CatchSignals catches.
var Caught = []os.Signal{os.Interrupt, syscall.SIGTERM}

func endsWait(os.Signal) bool { return true }

func stopsJob(os.Signal) bool { return false }

// stopSelf does nothing, because Windows cannot suspend a process by a signal.
func stopSelf() {}

// StopSignal and ContinueSignal are zero, because Windows has no such signals.
const (
	StopSignal     = syscall.Signal(0)
	ContinueSignal = syscall.Signal(0)
)

// awaitSent does nothing, because Windows has no ContinueSignal.
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

// SignalName returns the name of sig.
func SignalName(sig syscall.Signal) string { return sig.String() }

func ownSession() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

func ownGroup() *syscall.SysProcAttr { return ownSession() }

// startAtGate starts CMD directly, because a Windows process cannot become another program.
// If leasehold is killed before it has sent CMD's process id to the watchdog, CMD survives.
var startAtGate = startDirectly

// waitUnlessStopped waits until the child process p has ended. Windows cannot suspend it by
// a signal.
func waitUnlessStopped(p *os.Process) { _, _ = p.Wait() }

func (c *Child) await() syscall.Signal {
	if state, err := c.cmd.Process.Wait(); err == nil {
		status := state.Sys().(syscall.WaitStatus)
		c.status = &status
	}
	return 0
}

// PassOn kills CMD, whatever signal was received: Windows has no signal except SIGKILL.
func (c *Child) PassOn(os.Signal) { _ = watchdog.KillGroup(c.group(), syscall.SIGKILL) }

// WasStopped does nothing, because Windows cannot suspend CMD by a signal.
func (c *Child) WasStopped(syscall.Signal) {}

type terminal struct{}

func (*terminal) takeBack() {}

// ParentEnd returns a channel that is closed when the parent, the process that started this
// one, has ended. It returns an error if the parent has already ended.
func ParentEnd() (<-chan struct{}, error) {
	parent, err := os.FindProcess(os.Getppid())
	if err != nil {
		return nil, fmt.Errorf("--die-with-parent: cannot watch the process that started leasehold: %w: leave the flag out", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = parent.Wait() // on Windows, Wait works for any process, not only for children
	}()
	return ended, nil
}
