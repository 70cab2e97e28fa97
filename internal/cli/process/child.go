package process

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/watchdog"
	"github.com/leasehold-go/leasehold/internal/filefault"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// Child is CMD, in a process group of its own.
type Child struct {
	cmd      *exec.Cmd
	terminal terminal
	Stops    chan syscall.Signal // receives the signal each time CMD is stopped
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

// watch reports stops of CMD until it ends.
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

// Signal sends a signal to CMD's group, which may have ended.
func (c *Child) Signal(sig syscall.Signal) { _ = watchdog.KillGroup(c.group(), sig) }

// Reap returns CMD's exit code. Exited must be closed.
func (c *Child) Reap() int {
	_ = c.cmd.Wait() // the exit code is in ProcessState, or in c.status
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

// StartError returns the error, with its exit code, for a CMD that could not be started.
func StartError(name string, err error) error {
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return failure.Exit(failure.CodeNoCommand, misuse.Errorf("%s: command not found", visible.Name(name)))
	case errors.Is(err, exec.ErrDot):
		return failure.Exit(failure.CodeNoCommand, misuse.Errorf("%s is only in the current directory: call it ./%s", visible.Name(name), name))
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	var look *exec.Error
	if errors.As(err, &look) {
		err = look.Err
	}
	if fault, is := filefault.Of(err); is {
		return failure.Exit(failure.CodeNotExec, misuse.Errorf("%s cannot be executed: %s", visible.Name(name), fault))
	}
	return failure.Exit(failure.CodeNotExec, misuse.Errorf("%s cannot be executed: %v", visible.Name(name), err))
}

// gate keeps CMD from running until the watchdog knows its process group, so
// that no process that CMD starts survives if leasehold is killed.
//
// The started process is leasehold itself (package atgate). It waits at the gate and then becomes
// CMD (execve(2)): the same process in the same group. The watchdog need not confirm that it
// knows the group. The order is in its pipe before the gate opens, and the watchdog reads it
// before EOF. EOF means that the supervisor has died. If the supervisor dies earlier, the gate
// never opens.
//
// A group that another process creates first, for CMD to join, would need no gate. But CMD would
// not lead that group, and could easily leave it: a shell with job control creates its own group,
// and setsid(2) a session.
type gate struct {
	conn   *os.File      // the supervisor's end; nil if there is no gate
	passed chan struct{} // closed once CMD runs, or once it is certain that CMD will never run
	err    error         // why CMD could not be executed; set before passed is closed
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
		_, _ = g.conn.Write([]byte{1}) // an error means that the process has ended, which Reap reports
	}
}

// execError returns the reason why CMD could not be executed, or nil if CMD was executed.
// code is the exit code of the process. Only failure.CodeNotRun can mean that the process
// did not become CMD.
func (g *gate) execError(code int) error {
	if code != failure.CodeNotRun {
		return nil
	}
	<-g.passed
	return g.err
}
