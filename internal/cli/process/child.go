package process

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/watchdog"
	"github.com/leasehold-go/leasehold/internal/filefault"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// Child is CMD, in a process group of its own.
type Child struct {
	cmd      *exec.Cmd
	terminal terminal
	Stops    chan syscall.Signal // receives the stop signal each time that CMD is stopped, such as by Ctrl-Z
	Exited   chan struct{}       // closed when CMD has ended, before Reap is called
	reaped   chan struct{}       // closed by Reap
	status   *syscall.WaitStatus // exit status of CMD, set before Exited is closed; nil on systems where await does not reap CMD
}

// Start starts CMD. On Linux the kernel kills CMD when the thread that started it ends, so
// Start keeps that thread until CMD has ended.
func Start(cmd *exec.Cmd) (*Child, error) {
	c := &Child{cmd: cmd, Stops: make(chan syscall.Signal), Exited: make(chan struct{}), reaped: make(chan struct{})}
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

// watch sends each stop of CMD to Stops, until CMD ends.
func (c *Child) watch() {
	defer close(c.Exited)
	for {
		stopped, sig := c.await()
		if !stopped {
			return
		}
		c.Stops <- sig
	}
}

// group returns the id of CMD's process group.
func (c *Child) group() int { return c.cmd.Process.Pid }

// Signal sends a signal to CMD's group. It has no effect if the group has ended.
func (c *Child) Signal(sig syscall.Signal) { _ = watchdog.KillGroup(c.group(), sig) }

// Reap returns CMD's exit code. It must be called only after Exited is closed.
func (c *Child) Reap() int {
	_ = c.cmd.Wait() // the error is not needed: the exit code is in ProcessState, or in c.status
	close(c.reaped)
	c.terminal.takeBack()
	switch {
	case c.status != nil:
		return exitCode(*c.status)
	case c.cmd.ProcessState == nil:
		return failure.CodeNotRun
	}
	return exitCode(c.cmd.ProcessState.Sys().(syscall.WaitStatus))
}

// Find returns the path of CMD's program. It is called before the wait for KEY, which would
// be useless if the program did not exist.
func Find(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", StartError(name, err)
	}
	return path, nil
}

// StartError returns the error of a CMD that could not be started. The error carries
// leasehold's exit code.
func StartError(name string, err error) error {
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return failure.Exit(failure.CodeNoCommand, failure.Misusef("%s: command not found", visible.Name(name)))
	case errors.Is(err, exec.ErrDot):
		return failure.Exit(failure.CodeNoCommand, failure.Misusef("%s is only in the current directory: call it ./%s", visible.Name(name), name))
	}
	err = failure.WithoutPath(err)
	var look *exec.Error
	if errors.As(err, &look) {
		err = look.Err
	}
	var why any = err
	if fault, is := filefault.Of(err); is {
		why = fault
	}
	return failure.Exit(failure.CodeNotExec, failure.Misusef("%s cannot be executed: %v", visible.Name(name), why))
}

// gate keeps CMD from running until the watchdog knows CMD's process group. So if leasehold
// is killed, no process that CMD has started survives.
//
// The started process is leasehold itself (package atgate). It waits at the gate and then
// becomes CMD (execve(2)), as the same process in the same group. The supervisor writes the
// group to the watchdog's pipe, and then opens the gate. If the supervisor dies after that,
// the watchdog reads the group before it reads EOF, which means the death. If the
// supervisor dies earlier, the gate never opens. The watchdog therefore need not confirm
// that it knows the group.
//
// The alternative without a gate fails: another process creates the group first, and CMD
// joins it. Such a CMD does not lead that group, and can easily leave it: a shell with job
// control creates its own group, and setsid(2) creates a session.
type gate struct {
	conn   *os.File      // the supervisor's end; nil if there is no gate
	passed chan struct{} // closed once CMD runs, or once it is certain that CMD will never run
	err    error         // reason why CMD could not be executed; set before passed is closed
}

// noGate returns a gate that CMD has already passed.
func noGate() *gate {
	g := &gate{passed: make(chan struct{})}
	close(g.passed)
	return g
}

// open lets CMD run.
func (g *gate) open() {
	if g.conn != nil {
		_, _ = g.conn.Write([]byte{1}) // a write error means that the process has ended; Reap reports that
	}
}

// execError returns the reason why CMD could not be executed, or nil if CMD was executed.
// code is the exit code of the process: a process that could not execute CMD exits with
// failure.CodeNotRun.
func (g *gate) execError(code int) error {
	if code != failure.CodeNotRun {
		return nil
	}
	<-g.passed
	return g.err
}
