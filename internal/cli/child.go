package cli

import (
	"os/exec"
	"runtime"
	"syscall"
)

// child is CMD, in a process group of its own.
type child struct {
	cmd      *exec.Cmd
	terminal terminal
	stops    chan syscall.Signal // CMD was stopped by this signal
	exited   chan struct{}       // closed when CMD has ended; it is reaped by reap
	reaped   chan struct{}       // closed by reap
	status   *syscall.WaitStatus // where exited could not be told without reaping; set before it is closed
}

// startChild starts CMD. On Linux the kernel kills it if this process dies:
// that is tied to the thread which started it, so one is kept until CMD ends.
func startChild(cmd *exec.Cmd) (*child, error) {
	c := &child{cmd: cmd, stops: make(chan syscall.Signal), exited: make(chan struct{}), reaped: make(chan struct{})}
	cmd.SysProcAttr = ownGroup()
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
	go c.watch()
	return c, nil
}

// watch reports what happens to CMD until it ends.
func (c *child) watch() {
	defer close(c.exited)
	for {
		stopped, sig := c.await()
		if !stopped {
			return
		}
		c.stops <- sig
	}
}

// group is the id of CMD's process group.
func (c *child) group() int { return c.cmd.Process.Pid }

// signal sends a signal to CMD's group, which may have ended by now.
func (c *child) signal(sig syscall.Signal) { _ = killGroup(c.group(), sig) }

// reap returns CMD's exit code, once exited is closed.
func (c *child) reap() int {
	_ = c.cmd.Wait() // what it says is in the state, or in c.status
	close(c.reaped)
	c.terminal.takeBack()
	switch {
	case c.status != nil:
		return exitCode(*c.status)
	case c.cmd.ProcessState == nil:
		return codeNotRun
	}
	return exitCode(c.cmd.ProcessState.Sys().(syscall.WaitStatus))
}
