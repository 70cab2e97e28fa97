//go:build unix

package process

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leasehold-go/leasehold/internal/cli/atgate"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
)

// ownSession puts a process into its own session, so that it receives no signals of the
// terminal.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// waitUnlessStopped waits until a child process has ended. If the child is stopped
// (SIGSTOP), waitUnlessStopped kills it.
func waitUnlessStopped(p *os.Process) {
	defer func() { _ = p.Release() }()
	for {
		var status unix.WaitStatus
		_, err := unix.Wait4(p.Pid, &status, unix.WUNTRACED, nil)
		switch {
		case err == unix.EINTR:
		case err == nil && status.Stopped():
			_ = p.Kill()
		default:
			return
		}
	}
}

// exitCode returns the exit code of a process in a shell's form: 128+N for signal N.
func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return failure.CodeSignal + int(status.Signal())
	}
	return status.ExitStatus()
}

// startAtGate starts self instead of cmd. The process becomes cmd when the gate is opened.
func startAtGate(self string, cmd *exec.Cmd) (*Child, *gate, error) {
	here, there, err := gateEnds()
	if err != nil {
		return nil, nil, err
	}
	g := &gate{conn: os.NewFile(uintptr(here), "gate"), passed: make(chan struct{})}
	cmd.Args = atgate.Args(there, cmd.Path, cmd.Args)
	cmd.Path = self
	c, err := Start(cmd)
	_ = unix.Close(there)
	if err != nil {
		_ = g.conn.Close()
		return nil, nil, err
	}
	go g.await()
	return c, g, nil
}

// gateEnds returns the file descriptors of the gate's two ends: first the supervisor's,
// then the waiting process's. The waiting process inherits its descriptor under the same
// number. That number was free in this process, so no file that CMD inherits has it. With
// exec.Cmd.ExtraFiles the number would be 3, which such a file may have. The SDK may start
// a process at that moment to get credentials. Such a process also inherits the descriptor,
// which only delays the signals for CMD until that process ends.
func gateEnds() (here, there int, err error) {
	syscall.ForkLock.RLock() // holds off the start of other processes, which must not inherit the supervisor's end
	defer syscall.ForkLock.RUnlock()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return 0, 0, os.NewSyscallError("socketpair", err)
	}
	unix.CloseOnExec(ends[0])
	return ends[0], ends[1], nil
}

// await reads the report of the waiting process. The report is an error number if CMD could
// not be executed. It is empty if the process has become CMD or has ended.
func (g *gate) await() {
	defer close(g.passed)
	defer g.conn.Close()
	answer, _ := io.ReadAll(g.conn)
	if n, err := strconv.Atoi(string(answer)); err == nil {
		g.err = syscall.Errno(n)
	}
}

// terminal is the controlling terminal, which belongs to one process group at a time. It
// normally belongs to the supervisor's group rather than CMD's, so that the supervisor
// receives Ctrl-C. If CMD reads the terminal, the kernel stops CMD (termios(3), SIGTTIN).
// Only then does the supervisor give the terminal to CMD's group.
type terminal struct {
	f     *os.File
	given bool
}

// foreground returns the process group to which the terminal belongs, or 0 if there is no
// terminal.
func (t *terminal) foreground() int {
	if t.f == nil {
		f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
		if err != nil {
			return 0
		}
		t.f = f
	}
	group, err := unix.IoctlGetInt(int(t.f.Fd()), unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return group
}

// give gives the terminal to a group. It does nothing unless the terminal belongs to this
// process's group.
func (t *terminal) give(group int) bool {
	if t.foreground() != unix.Getpgrp() {
		return false
	}
	t.given = t.set(group)
	return t.given
}

// takeBack gives the terminal back to this process's group.
func (t *terminal) takeBack() {
	if t.given {
		t.set(unix.Getpgrp())
		t.given = false
	}
}

// set sets the terminal's group. The kernel stops a background process that tries this,
// unless it ignores SIGTTOU (tcsetpgrp(3)).
func (t *terminal) set(group int) bool {
	signal.Ignore(unix.SIGTTOU)
	defer signal.Reset(unix.SIGTTOU)
	return unix.IoctlSetPointerInt(int(t.f.Fd()), unix.TIOCSPGRP, group) == nil
}

// WasStopped is called when sig has stopped CMD.
func (c *Child) WasStopped(sig syscall.Signal) {
	switch sig {
	case unix.SIGTTIN, unix.SIGTTOU:
		if c.terminal.give(c.group()) {
			c.Signal(unix.SIGCONT)
		}
	case unix.SIGTSTP:
		if !c.terminal.given {
			return
		}
		// Ctrl-Z stopped only CMD. The shell expects the whole job to stop and
		// to continue together.
		c.terminal.takeBack()
		if isJob() {
			stopUntilContinued(0)
		}
		c.terminal.give(c.group())
		c.Signal(unix.SIGCONT)
	}
}

// parent is the id of the process that started this one. It is read when the program
// begins. A later call of Getppid may return another id: when the parent ends, the process
// that adopts orphans replaces it.
var parent = os.Getppid()

// parentEvery is the interval at which this process checks whether its parent still lives.
// Linux could send a signal at the parent's death (PR_SET_PDEATHSIG), but other systems
// cannot. That signal may also come too early. The kernel sends it when the thread that
// started this process ends, even if the parent lives on.
const parentEvery = 250 * time.Millisecond

// ParentEnd returns a channel that is closed when the process that started this one has
// ended. It returns an error if this process is a child of init, since it may already be an
// orphan. Another process may have adopted this one before the program began. ParentEnd
// cannot detect that: the channel is then closed when that other process has ended.
func ParentEnd() (<-chan struct{}, error) {
	if parent <= 1 { // zero means that the parent is outside this container
		return nil, errors.New("--die-with-parent: leasehold was started by init, or by a process that has ended already: " +
			"start it from the process that it is to end with, or leave the flag out")
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for os.Getppid() == parent {
			time.Sleep(parentEvery)
		}
	}()
	return ended, nil
}

// Caught lists the signals that are caught. They are passed on to CMD, except PIPE, which is
// caught so that a closed stderr does not kill the supervisor of CMD.
var Caught = []os.Signal{
	unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2,
	unix.SIGALRM, unix.SIGVTALRM, unix.SIGWINCH, unix.SIGTSTP, unix.SIGCONT, unix.SIGPIPE,
}

// PassOn passes a signal that this process has received on to CMD's group.
func (c *Child) PassOn(sig os.Signal) {
	switch sig {
	case unix.SIGPIPE: // not passed on: a write to this process's own stderr caused the signal
	case unix.SIGTSTP:
		if stopsJob(sig) {
			c.Signal(unix.SIGTSTP)
			stopSelf()
		}
	default:
		c.Signal(sig.(syscall.Signal))
	}
}

// endsWait reports whether leasehold stops waiting when it receives the signal.
func endsWait(sig os.Signal) bool {
	return !slices.Contains([]os.Signal{unix.SIGWINCH, unix.SIGTSTP, unix.SIGCONT, unix.SIGPIPE}, sig)
}

// stopsJob reports whether a signal comes from Ctrl-Z and should stop this process.
func stopsJob(sig os.Signal) bool { return sig == unix.SIGTSTP && isJob() }

// isJob reports whether this process can be stopped and continued as a job. It returns
// false if a stopped process would hang, in two cases. The first process of a container
// does not stop by its own signals. A group that a session's leader belongs to (ssh -t HOST
// leasehold run) has no shell that would continue it. TSTP does not stop the other
// processes of such a group (POSIX, "orphaned process group").
func isJob() bool {
	leader, err := unix.Getsid(0)
	return unix.Getpid() != 1 && (err != nil || leader != unix.Getpgrp())
}

// stopSelf stops this process until it receives ContinueSignal.
func stopSelf() { stopUntilContinued(unix.Getpid()) }

// stopUntilContinued stops this process, or its group, until it is continued. The kernel
// may let the calling thread run for a while after kill(2). Only ContinueSignal means that
// the stop has ended, so stopUntilContinued waits for that signal.
func stopUntilContinued(target int) {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, ContinueSignal)
	defer signal.Stop(continued)
	if unix.Kill(target, unix.SIGSTOP) == nil {
		<-continued
	}
}

// StopSignal stops a process, and ContinueSignal continues it.
const (
	StopSignal     = unix.SIGSTOP
	ContinueSignal = unix.SIGCONT
)

// sentLimit is the longest time for which awaitSent waits for ContinueSignal, which may
// never arrive.
const sentLimit = time.Second

// overtakes is the longest time by which a later signal may arrive before an earlier one.
const overtakes = 5 * time.Millisecond

// awaitSent returns once this process has received the ending signals that were sent to it
// before the call. On a busy machine such a signal may arrive late, when the same signal
// has already ended CMD. awaitSent sends ContinueSignal to this process, and waits until it
// arrives. ContinueSignal does not affect a running process. Earlier signals normally
// arrive first: the kernel and the Go runtime deliver pending signals with the lowest
// number first, and ContinueSignal has a higher number. But another thread may be about to
// receive an earlier signal. awaitSent therefore also waits as long as a preempted thread
// needs.
func awaitSent() {
	last := make(chan os.Signal, 1)
	signal.Notify(last, ContinueSignal)
	defer signal.Stop(last)
	if unix.Kill(unix.Getpid(), ContinueSignal) != nil {
		return
	}
	select {
	case <-last:
		time.Sleep(overtakes)
	case <-time.After(sentLimit):
	}
}

func signalNumber(name string) syscall.Signal { return unix.SignalNum(name) }

// SignalName names a signal.
func SignalName(sig syscall.Signal) string { return unix.SignalName(sig) }
