package watchdog

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// echo is a process that writes each line of its input to its output. It leads its own
// process group.
type echo struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startEcho(t *testing.T, command ...string) *echo {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in := lab.Must(cmd.StdinPipe())(t)
	out := lab.Must(cmd.StdoutPipe())(t)
	lab.OK(t, cmd.Start())
	e := &echo{cmd, in, bufio.NewReader(out)}
	t.Cleanup(func() {
		_ = in.Close() // the process ends when its input is closed
		_ = cmd.Wait()
	})
	return e
}

// lives reports whether the process repeats a line. It returns false if SIGKILL was sent
// before the call, because the process then dies before it reads the line.
func (e *echo) lives() bool {
	_, _ = io.WriteString(e.in, "x\n") // fails if the process has ended
	line, _ := e.out.ReadString('\n')
	return line == "x\n"
}

func TestWatchdogSendsNoSignalToProcessGroupWithReusedID(t *testing.T) {
	another := startEcho(t, "cat")
	pid := another.cmd.Process.Pid
	began := Began(pid)
	if began == 0 {
		t.Fatal("the process has no start time")
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		for _, groupOnly := range []bool{false, true} {
			Descent{Supervisor: pid, Began: began - 1, GroupOnly: groupOnly}.Signal(pid, sig)
		}
	}
	lab.Want(t, "another process lives", another.lives(), true)
	Descent{Supervisor: pid, Began: began, GroupOnly: true}.Signal(pid, syscall.SIGKILL)
	lab.Want(t, "CMD lives", another.lives(), false)
}

func TestWatchdogDoesNotKillProcessWithReusedPID(t *testing.T) {
	another := startEcho(t, "cat")
	found, ok := readProcess(another.cmd.Process.Pid)
	if !ok {
		t.Fatal("the process was not found")
	}
	before := found
	before.began--
	before.kill()
	lab.Want(t, "another process lives", another.lives(), true)
	found.kill()
	lab.Want(t, "the process itself lives", another.lives(), false)
}

func TestListOfDescendantsOmitsChildrenOfProcessWithReusedPID(t *testing.T) {
	// The process "another" represents a process that has got the id of a dead supervisor.
	another := startEcho(t, "sh", "-c", "setsid cat; :")
	// The process that answers is the child (cat), which runs in another process group.
	if !another.lives() {
		t.Fatal("the process does not answer")
	}
	all := lab.Must(Descent{Supervisor: another.cmd.Process.Pid}.All(0))(t)
	lab.Want(t, "descendants in another process group", all, nil)
	if left, err := childrenOf(another.cmd.Process.Pid); err != nil || len(left) == 0 {
		t.Errorf("the process has no children: %v, %v", left, err)
	}
}

// A program that becomes leasehold by execve(2), as a shell does with exec, may have children.
func TestListOfDescendantsOmitsProcessOlderThanCMD(t *testing.T) {
	pid := startEcho(t, "cat").cmd.Process.Pid
	for cmdBegan, want := range map[int64]bool{Began(pid): true, Began(pid) + 1: false} {
		all := lab.Must(Descent{Supervisor: os.Getpid(), Began: cmdBegan}.All(0))(t)
		lab.Want(t, "the process is listed", slices.ContainsFunc(all, func(p Process) bool { return p.PID == pid }), want)
	}
}
