package process

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/watchdog"
	"github.com/leasehold-go/leasehold/internal/filefault"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// Child is a running CMD. It has a process group of its own.
type Child struct {
	cmd      *exec.Cmd
	terminal terminal
	Stops    chan syscall.Signal // receives a signal such as SIGTSTP each time that CMD is suspended, for example by Ctrl-Z
	Exited   chan struct{}       // closed when CMD has ended; only then may Reap be called
	reaped   chan struct{}       // closed by Reap
	status   *syscall.WaitStatus // exit status of CMD, set before Exited is closed; nil on Linux, where await does not reap CMD
}

// Start starts CMD. On Linux, the kernel kills CMD when the operating system thread that
// started CMD ends. So Start locks a goroutine to that thread until Reap has reaped CMD.
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

// watch puts each signal that suspends CMD, such as SIGTSTP, into the channel c.Stops. It closes
// c.Exited when CMD has ended.
func (c *Child) watch() {
	defer close(c.Exited)
	for sig := c.await(); sig != 0; sig = c.await() {
		c.Stops <- sig
	}
}

// group returns the id of CMD's process group, which is also CMD's process id.
func (c *Child) group() int { return c.cmd.Process.Pid }

// inGroup reports whether p is in CMD's process group.
func (c *Child) inGroup(p watchdog.Process) bool { return p.Group == c.group() }

// Signal sends sig to CMD's process group. It does nothing if no process of the group is
// left.
func (c *Child) Signal(sig syscall.Signal) { _ = watchdog.KillGroup(c.group(), sig) }

// Reap reaps CMD and returns its exit code. It must be called once, after Exited is
// closed.
func (c *Child) Reap() int {
	_ = c.cmd.Wait() // error ignored: ProcessState or c.status contains the exit status
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

// exitCode returns the exit code that a shell would report: 128+N for a process that signal
// N killed.
func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() { // never on Windows
		return failure.CodeSignal + int(status.Signal())
	}
	return status.ExitStatus()
}

// Find returns the path of the executable with the given name. It is called before the wait for
// KEY, which would be useless without the executable.
func Find(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", StartError(name, err)
	}
	return path, nil
}

// StartError returns the error for a CMD that could not be started because of err. It
// contains the exit code for leasehold: 126, 127 or, if err means that the lock was lost, 123.
func StartError(name string, err error) error {
	switch {
	case errors.Is(err, leasehold.ErrLost):
		return failure.Exit(failure.CodeLost, failure.Like(err, err.Error()+"; CMD was not run"))
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return failure.Exit(failure.CodeNoCommand, failure.Misusef("%s: command not found", visible.Name(name)))
	case errors.Is(err, exec.ErrDot):
		return failure.Exit(failure.CodeNoCommand, failure.Misusef("%s is only in the current directory: call it ./%s", visible.Name(name), name))
	}
	err = failure.WithoutPath(err)
	if look, is := failure.As[*exec.Error](err); is {
		err = look.Err
	}
	var why any = err
	if fault, is := filefault.Of(err); is {
		why = fault
	}
	return failure.Exit(failure.CodeNotExec, failure.Misusef("%s cannot be executed: %v", visible.Name(name), why))
}

// gate keeps CMD from running until the supervisor has sent the id of CMD's process group to the
// watchdog. So the watchdog can kill every process of CMD if the supervisor is killed.
//
// The supervisor starts a child, which first runs leasehold itself (package atgate) and waits at
// the gate. The supervisor sends the id of the child's group to the watchdog, and opens the gate.
// The child becomes CMD through execve(2), which keeps its process id and group.
//
// If the supervisor is killed, the watchdog reads the end of its input, and then kills CMD. The id
// comes before this end, so the supervisor need not wait until the watchdog has read the id.
//
// CMD must lead its group. In a group with another leader, CMD could easily leave the group: by
// setsid(2), or by setpgid(2), which shells with job control call.
type gate struct {
	conn   *os.File      // the supervisor's end of the socket to the child; nil if there is no gate
	passed chan struct{} // closed when CMD runs, or when it is certain that CMD will never run
	err    error         // why execve(2) failed; set before passed is closed, nil if it did not fail
}

// startDirectly starts cmd without a gate. In the gate that it returns, the channel "passed" is
// already closed.
func startDirectly(_ string, cmd *exec.Cmd) (*Child, *gate, error) {
	passed := make(chan struct{})
	close(passed)
	c, err := Start(cmd)
	return c, &gate{passed: passed}, err
}

// open opens the gate: the child now becomes CMD.
func (g *gate) open() {
	_, _ = g.conn.Write([]byte{1}) // the write fails if the child has ended, which Reap reports
}

// execError returns the error of execve(2) if the child could not become CMD; otherwise
// nil. code is the exit code of the child. A child that could not become CMD exits with
// CodeNotRun.
func (g *gate) execError(code int) error {
	if code != failure.CodeNotRun {
		return nil
	}
	<-g.passed
	return g.err
}
