package cli

import (
	"errors"
	"os/exec"
	"runtime"
	"syscall"
)

// child is CMD, in a process group of its own.
type child struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when CMD has ended; it is reaped by reap
	reaped chan struct{}
}

// startChild starts CMD. On Linux the kernel kills it if this process dies:
// that is tied to the thread which started it, so one is kept until CMD ends.
func startChild(cmd *exec.Cmd) (*child, error) {
	c := &child{cmd: cmd, exited: make(chan struct{}), reaped: make(chan struct{})}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	dieWithUs(cmd.SysProcAttr)
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			<-c.reaped
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	go func() {
		defer close(c.exited)
		awaitExit(cmd)
	}()
	return c, nil
}

// group is the id of CMD's process group.
func (c *child) group() int { return c.cmd.Process.Pid }

// signal sends a signal to CMD's group.
func (c *child) signal(sig syscall.Signal) { _ = killGroup(c.group(), sig) } // it may have ended by now

// reap returns CMD's exit code, once exited is closed.
func (c *child) reap() int {
	err := c.cmd.Wait()
	close(c.reaped)
	var code *exec.ExitError
	if err != nil && !errors.As(err, &code) && c.cmd.ProcessState == nil {
		return codeNotRun
	}
	status, _ := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return exitCode(status)
}
