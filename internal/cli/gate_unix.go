//go:build unix

package cli

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// startAtGate starts self in the place of cmd, which it becomes once the gate
// is opened.
func startAtGate(self string, cmd *exec.Cmd) (*child, *gate, error) {
	here, there, err := gateEnds()
	if err != nil {
		return nil, nil, err
	}
	g := &gate{conn: os.NewFile(uintptr(here), "gate"), passed: make(chan struct{})}
	cmd.Args = append([]string{"leasehold", "gate", "--", strconv.Itoa(there), cmd.Path}, cmd.Args...)
	cmd.Path = self
	c, err := startChild(cmd)
	_ = unix.Close(there)
	if err != nil {
		_ = g.conn.Close()
		return nil, nil, err
	}
	go g.await()
	return c, g, nil
}

// gateEnds returns the supervisor's end and that of the one who waits. The
// latter is inherited under its number, which is free here and so cannot be
// that of a file meant for CMD: exec.Cmd's ExtraFiles would take 3. Another
// process that the SDK starts for credentials in that very moment inherits it
// too; all that comes of it is that signals to CMD wait for its end.
func gateEnds() (here, there int, err error) {
	syscall.ForkLock.RLock() // nobody else started now keeps our end open
	defer syscall.ForkLock.RUnlock()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return 0, 0, os.NewSyscallError("socketpair", err)
	}
	unix.CloseOnExec(ends[0])
	return ends[0], ends[1], nil
}

// await reads what became of the one who waited: nothing if it runs CMD or has
// ended, the error's number if CMD could not be executed.
func (g *gate) await() {
	defer close(g.passed)
	defer g.conn.Close()
	answer, _ := io.ReadAll(g.conn)
	if n, err := strconv.Atoi(string(answer)); err == nil {
		g.err = syscall.Errno(n)
	}
}

// becomeWhenOpened waits at the gate and turns this process into CMD. It
// returns if CMD must not or cannot be executed.
func becomeWhenOpened(fd int, path string, args, env []string) {
	unix.CloseOnExec(fd)
	// The signal at the parent's death is one thread's, and execve(2) keeps
	// that of its caller. It is set before the gate is read: a parent that has
	// died by then closes the gate.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	dieWithParent()
	if !isOpened(fd) {
		return
	}
	err := unix.Exec(path, args, env)
	var number syscall.Errno
	if errors.As(err, &number) {
		_, _ = unix.Write(fd, []byte(strconv.Itoa(int(number))))
	}
}

// isOpened waits until the gate is opened, or closed for good.
func isOpened(fd int) bool {
	for {
		n, err := unix.Read(fd, make([]byte, 1))
		if err != unix.EINTR {
			return n == 1
		}
	}
}
