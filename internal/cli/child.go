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
	stops    chan syscall.Signal // receives the signal each time CMD is stopped
	exited   chan struct{}       // closed when CMD has ended, before reap is called
	reaped   chan struct{}       // closed by reap
	status   *syscall.WaitStatus // set before exited is closed, on systems where await must reap CMD; else nil
}

// startChild starts CMD. On Linux the kernel kills CMD when the thread that
// started it ends, so that thread is kept until CMD has ended.
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

// watch reports stops of CMD until it ends.
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

// reap returns CMD's exit code. exited must be closed.
func (c *child) reap() int {
	_ = c.cmd.Wait() // the exit code is in ProcessState, or in c.status
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
