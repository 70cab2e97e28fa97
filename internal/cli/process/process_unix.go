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
)

// ownSession returns attributes that start a process in a new session. Such a process does
// not receive signals of the terminal, such as Ctrl-C.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// waitUnlessStopped waits until the child process p has ended. It kills p if a signal suspends p,
// as SIGSTOP does.
func waitUnlessStopped(p *os.Process) {
	defer func() { _ = p.Release() }()
	for {
		var status unix.WaitStatus
		_, err := unix.Wait4(p.Pid, &status, unix.WUNTRACED, nil)
		switch {
		case err == unix.EINTR:
		case err == nil && stoppedBy(status) != 0:
			_ = p.Kill()
		default:
			return
		}
	}
}

// stoppedBy returns the signal that has suspended a process, or 0 if the process is not
// suspended. On BSD and macOS, Continued returns true if that signal is SIGSTOP, and Stopped
// returns true only for other signals (golang.org/x/sys/unix, syscall_bsd.go).
func stoppedBy(status unix.WaitStatus) syscall.Signal {
	if status.Continued() {
		return syscall.SIGSTOP
	}
	return max(status.StopSignal(), 0)
}

// startAtGate starts a child that runs self, the path of this executable, and waits at the
// gate. When the gate opens, the child becomes cmd.
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

// gateEnds creates the socket for a gate. It returns the file descriptors of the supervisor's end
// and of the child's end, in this order.
//
// The child's end keeps its descriptor number in the child, so it cannot replace another file that
// CMD inherits. With exec.Cmd.ExtraFiles, the number would be 3, under which CMD may inherit a
// file.
//
// The SDK may start a program for credentials at this moment. The program inherits a copy of the
// child's end, so await does not return before the program exits. Until then, the supervisor does
// not know that CMD runs: it forwards no signals to CMD, and does not react to a request to step
// down.
func gateEnds() (here, there int, err error) {
	syscall.ForkLock.RLock() // a process that started now would inherit the supervisor's end
	defer syscall.ForkLock.RUnlock()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return 0, 0, os.NewSyscallError("socketpair", err)
	}
	unix.CloseOnExec(ends[0])
	return ends[0], ends[1], nil
}

// await reads what the child writes to the gate. The child writes an error number if execve(2)
// fails. It writes nothing if it becomes CMD, or if it ends before that.
func (g *gate) await() {
	defer close(g.passed)
	defer g.conn.Close()
	answer, _ := io.ReadAll(g.conn)
	if n, err := strconv.Atoi(string(answer)); err == nil {
		g.err = syscall.Errno(n)
	}
}

// terminal is the controlling terminal. It belongs to one process group at a time, first to the
// supervisor's, which therefore receives Ctrl-C. If CMD reads from the terminal, the kernel
// suspends CMD (termios(3), SIGTTIN). The supervisor then gives the terminal to CMD's group.
type terminal struct {
	f     *os.File
	given bool
}

// foreground returns the process group to which the terminal belongs. It returns 0 if this
// process has no terminal.
func (t *terminal) foreground() int {
	if t.f == nil {
		f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
		if err != nil {
			return 0
		}
		t.f = f
	}
	group, _ := unix.IoctlGetInt(int(t.f.Fd()), unix.TIOCGPGRP) // 0 if this fails
	return group
}

// give gives the terminal to the process group with the given id. It does nothing and
// returns false if the terminal does not belong to the group of this process.
func (t *terminal) give(group int) bool {
	if t.foreground() != unix.Getpgrp() {
		return false
	}
	t.given = t.set(group)
	return t.given
}

// takeBack undoes give: it gives the terminal to the group of this process.
func (t *terminal) takeBack() {
	if t.given {
		t.set(unix.Getpgrp())
		t.given = false
	}
}

// set makes the terminal belong to the process group with the given id. The kernel suspends
// a background process that tries this, unless the process ignores SIGTTOU (tcsetpgrp(3)).
// So set ignores SIGTTOU.
func (t *terminal) set(group int) bool {
	signal.Ignore(unix.SIGTTOU)
	defer signal.Reset(unix.SIGTTOU)
	return unix.IoctlSetPointerInt(int(t.f.Fd()), unix.TIOCSPGRP, group) == nil
}

// WasStopped is called when the signal sig has suspended CMD. The package comment describes what
// this process does if CMD used the terminal in the background, or was suspended by Ctrl-Z.
func (c *Child) WasStopped(sig syscall.Signal) {
	switch sig {
	case unix.SIGTTIN, unix.SIGTTOU:
		if c.terminal.give(c.group()) {
			c.Signal(unix.SIGCONT)
		} else if c.terminal.f != nil && isJob() {
			_ = unix.Kill(0, sig) // the SIGCONT that ends this is forwarded to CMD, which then uses the terminal again
		}
	case unix.SIGTSTP, unix.SIGSTOP: // SIGSTOP comes from the leasehold of a nested run
		if !c.terminal.given {
			return
		}
		// CMD has the terminal, so Ctrl-Z suspended only CMD. The shell expects all
		// processes of a job to be suspended and continued together, so suspend this
		// process too.
		c.terminal.takeBack()
		if isJob() {
			stopUntilContinued(0)
		}
		c.terminal.give(c.group())
		c.Signal(unix.SIGCONT)
	}
}

// parent is the process id that os.Getppid returned at the start of this program. When the
// parent ends, another process adopts this process, and os.Getppid returns the id of the
// adopting process.
var parent = os.Getppid()

// parentEvery is the interval at which this process checks whether its parent still runs. A signal
// from Linux (PR_SET_PDEATHSIG) would not do: it comes when the thread that started this process
// ends, perhaps long before the parent process ends.
const parentEvery = 250 * time.Millisecond

// ParentEnd returns a channel that is closed when this process's parent has ended. It returns an
// error if the parent is init, because init may have adopted this process. If another process
// adopted this process before this program began, ParentEnd takes the adopting process for the
// parent.
func ParentEnd() (<-chan struct{}, error) {
	if parent <= 1 { // zero means that the parent is outside of this container
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

// Caught lists the signals that leasehold catches while it waits for KEY and while CMD runs.
// It forwards all of them to CMD except SIGPIPE. It catches SIGPIPE so that a closed
// standard error does not kill leasehold while CMD runs.
var Caught = []os.Signal{
	unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2,
	unix.SIGALRM, unix.SIGVTALRM, unix.SIGWINCH, unix.SIGTSTP, unix.SIGCONT, unix.SIGPIPE,
}

// PassOn forwards sig, a signal that this process has received, to CMD's process group.
func (c *Child) PassOn(sig os.Signal) {
	switch sig {
	case unix.SIGPIPE: // not forwarded: a write to this process's own standard error caused it
	case unix.SIGTSTP:
		if stopsJob(sig) {
			c.Signal(unix.SIGTSTP)
			stopSelf()
		}
	default:
		c.Signal(sig.(syscall.Signal))
	}
}

// endsWait reports whether sig ends leasehold while it waits for a key.
func endsWait(sig os.Signal) bool {
	return !slices.Contains([]os.Signal{unix.SIGWINCH, unix.SIGTSTP, unix.SIGCONT, unix.SIGPIPE}, sig)
}

// stopsJob reports whether sig comes from Ctrl-Z and should suspend this process.
func stopsJob(sig os.Signal) bool { return sig == unix.SIGTSTP && isJob() }

// isJob reports whether this process can suspend itself and a shell can then continue it. isJob
// returns false in two cases:
//
//   - This process is the first process (id 1) of a container. Such a process cannot suspend
//     itself with a signal.
//   - The session leader is in the same process group, as in "ssh -t HOST leasehold run". No
//     shell can then continue the group, so SIGTSTP does not suspend the processes in it (POSIX:
//     "orphaned process group").
func isJob() bool {
	leader, err := unix.Getsid(0)
	return unix.Getpid() != 1 && (err != nil || leader != unix.Getpgrp())
}

// stopSelf suspends this process until it receives SIGCONT.
func stopSelf() { stopUntilContinued(unix.Getpid()) }

// stopUntilContinued suspends this process, or its whole process group if target is 0. It returns
// when SIGCONT has arrived. It must wait for SIGCONT explicitly, because kill(2) may return a
// moment before this process is suspended.
func stopUntilContinued(target int) {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, ContinueSignal)
	defer signal.Stop(continued)
	if unix.Kill(target, unix.SIGSTOP) == nil {
		<-continued
	}
}

// StopSignal suspends a process, and ContinueSignal continues it.
const (
	StopSignal     = unix.SIGSTOP
	ContinueSignal = unix.SIGCONT
)

// sentLimit limits how long awaitSent waits for ContinueSignal, which might never arrive.
const sentLimit = time.Second

// overtakes is how long awaitSent waits for other signals after ContinueSignal has arrived.
// ContinueSignal may overtake signals that were sent earlier.
const overtakes = 5 * time.Millisecond

// awaitSent waits for signals that ask this process to end, and that were sent before the call but
// have not arrived yet. A service manager, for example, may send SIGTERM to this process and to
// CMD. On a busy machine, CMD may end before SIGTERM arrives here.
//
// So awaitSent sends ContinueSignal to this process, which does not affect a running process, and
// waits for it. The kernel and the Go runtime deliver the pending signal with the lowest number
// first. The awaited signals have lower numbers than ContinueSignal, so they normally arrive before
// it. But the thread that receives one of them may be preempted. So awaitSent does this four times,
// which takes longer on a busy machine, and then sleeps for the duration "overtakes".
func awaitSent() {
	last := make(chan os.Signal, 1)
	signal.Notify(last, ContinueSignal)
	defer signal.Stop(last)
	for range 4 {
		if unix.Kill(unix.Getpid(), ContinueSignal) != nil {
			return
		}
		select {
		case <-last:
		case <-time.After(sentLimit):
			return
		}
	}
	time.Sleep(overtakes)
}

func signalNumber(name string) syscall.Signal { return unix.SignalNum(name) }

// SignalName returns the name of sig, such as SIGTERM.
func SignalName(sig syscall.Signal) string { return unix.SignalName(sig) }
