//go:build unix

package process

import (
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/leasehold-go/leasehold/internal/cli/atgate"
)

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

// gateEnds returns the supervisor's end and the waiting process's end. The waiting process
// inherits its end under the same number. That number was free here, so it cannot be the
// number of a file meant for CMD; exec.Cmd.ExtraFiles would use 3. A process that the SDK
// starts at that moment to get credentials inherits it too. That only delays the signals
// for CMD until it ends.
func gateEnds() (here, there int, err error) {
	syscall.ForkLock.RLock() // a process started meanwhile must not inherit our end
	defer syscall.ForkLock.RUnlock()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return 0, 0, os.NewSyscallError("socketpair", err)
	}
	unix.CloseOnExec(ends[0])
	return ends[0], ends[1], nil
}

// await reads the report of the waiting process: the error number if CMD could not be
// executed, and nothing if the process runs CMD or has ended.
func (g *gate) await() {
	defer close(g.passed)
	defer g.conn.Close()
	answer, _ := io.ReadAll(g.conn)
	if n, err := strconv.Atoi(string(answer)); err == nil {
		g.err = syscall.Errno(n)
	}
}
