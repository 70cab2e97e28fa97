//go:build linux

// Package process starts programs that the kernel kills when this program ends.
package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Process is a started program. Its methods are safe for concurrent use.
type Process struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // result of exec.Cmd.Wait; valid once the channel ended is closed
}

// Start starts cmd. When the calling program ends, the kernel kills the started process. The output
// of cmd must go to files or writers. A pipe from StdoutPipe or StderrPipe would lose output,
// because exec.Cmd.Wait closes it when the process ends.
func Start(cmd *exec.Cmd) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	p := &Process{cmd: cmd, ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel kills the started process as soon as the thread that called cmd.Start ends,
		// even if this program still runs. So this goroutine keeps its thread until cmd has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// PID returns the process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ended returns a channel that is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Err returns nil while the process runs. After the process has ended, it returns the
// result of exec.Cmd.Wait.
func (p *Process) Err() error {
	select {
	case <-p.ended:
		return p.err
	default:
		return nil
	}
}

// Signal sends a signal to the process. It does nothing if the process has ended.
func (p *Process) Signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s to process %d: %w", s, p.PID(), err)
	}
	return nil
}

// Stop suspends the process (SIGSTOP), and returns once all its threads are suspended.
func (p *Process) Stop() error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for {
		switch err := unix.Waitid(unix.P_PID, p.PID(), nil, unix.WSTOPPED, nil); {
		case err == nil:
			return nil
		case !errors.Is(err, unix.EINTR): // any other error, such as ECHILD, means that the process has ended
			return fmt.Errorf("wait until process %d has stopped: %w", p.PID(), err)
		}
	}
}

// Continue resumes a process that Stop has suspended.
func (p *Process) Continue() error { return p.Signal(syscall.SIGCONT) }

// Kill ends the process with SIGKILL and waits until it has ended. A second call has no
// effect.
func (p *Process) Kill() error {
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.ended
	return nil
}
