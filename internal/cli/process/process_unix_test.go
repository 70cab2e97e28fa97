//go:build unix

package process

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/watchdog"
)

// gatedCMD returns a CMD that creates a file, and a function that reports whether CMD has
// run.
func gatedCMD(t *testing.T) (cmd *exec.Cmd, hasRun func() bool) {
	ran := filepath.Join(t.TempDir(), "ran")
	cmd = &exec.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", `: >"$1"`, "sh", ran}, Stderr: os.Stderr}
	return cmd, func() bool {
		_, err := os.Stat(ran)
		return err == nil
	}
}

func startGated(t *testing.T, cmd *exec.Cmd) (*Child, *gate) {
	t.Helper()
	self, err := ThisProgram()
	if err != nil {
		t.Fatal(err)
	}
	c, g, err := startAtGate(self, cmd)
	if err != nil {
		t.Fatal(err)
	}
	return c, g
}

// closeForGood closes a gate without opening it, as happens when the supervisor dies.
func closeForGood(t *testing.T, g *gate) {
	t.Helper()
	conn, err := g.conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if ended := conn.Control(func(fd uintptr) { err = unix.Shutdown(int(fd), unix.SHUT_RDWR) }); ended != nil || err != nil {
		t.Error(ended, err)
	}
}

// ended waits until the process and its gate have ended.
func ended(c *Child, g *gate) (code int, refusal error) {
	<-c.Exited
	code = c.Reap()
	<-g.passed
	return code, g.execError(code)
}

func TestCMDStartsWhenGateOpens(t *testing.T) {
	cmd, hasRun := gatedCMD(t)
	c, g := startGated(t, cmd)
	g.open()
	if code, err := ended(c, g); code != 0 || err != nil || !hasRun() {
		t.Errorf("exit code %d, %v, has run: %v", code, err, hasRun())
	}
}

func TestCMDDoesNotStartAfterGateIsClosed(t *testing.T) {
	cmd, hasRun := gatedCMD(t)
	c, g := startGated(t, cmd)
	closeForGood(t, g)
	if code, _ := ended(c, g); code != failure.CodeNotRun || hasRun() {
		t.Errorf("exit code %d, has run: %v", code, hasRun())
	}
}

func TestSignalEndsWaitAtGate(t *testing.T) {
	cmd, hasRun := gatedCMD(t)
	c, g := startGated(t, cmd)
	c.Signal(syscall.SIGTERM)
	if code, _ := ended(c, g); code != failure.CodeSignal+int(syscall.SIGTERM) || hasRun() {
		t.Errorf("exit code %d, has run: %v", code, hasRun())
	}
	g.open() // no process is left to run CMD
}

func TestGateReportsWhyCMDCannotStart(t *testing.T) {
	noFormat := filepath.Join(t.TempDir(), "no-format")
	if err := os.WriteFile(noFormat, []byte("neither a script nor a program\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]syscall.Errno{
		noFormat: syscall.ENOEXEC, noFormat + "-either": syscall.ENOENT, filepath.Dir(noFormat): syscall.EACCES,
	} {
		c, g := startGated(t, &exec.Cmd{Path: path, Args: []string{"cmd"}, Stderr: os.Stderr})
		g.open()
		if code, err := ended(c, g); !errors.Is(err, want) {
			t.Errorf("%s: exit code %d, %v, want %v", path, code, err, want)
		}
	}
}

// orderTaker is a watchdog's pipe that calls a function when it gets a group.
type orderTaker func()

func (f orderTaker) Write(order []byte) (int, error) {
	if strings.HasPrefix(string(order), watchdog.OrderGroup) {
		f()
	}
	return len(order), nil
}

func (orderTaker) Close() error { return nil }

func TestWatchdogKnowsGroupBeforeGateOpens(t *testing.T) {
	self, err := ThisProgram()
	if err != nil {
		t.Fatal(err)
	}
	cmd, hasRun := gatedCMD(t)
	s := &supervision{Job: Job{Cmd: cmd}, self: self}
	s.watchdog = &watchdogHandle{orders: orderTaker(func() {
		closeForGood(t, s.gate)
	})}
	c, err := s.start()
	if err != nil {
		t.Fatal(err)
	}
	if code, _ := ended(c, s.gate); code != failure.CodeNotRun || hasRun() {
		t.Errorf("exit code %d, has run: %v", code, hasRun())
	}
}

func TestWatchForParentExitFailsForChildOfInit(t *testing.T) {
	was := parent
	t.Cleanup(func() { parent = was })
	for _, parent = range []int{0, 1} {
		if ended, err := ParentEnd(); err == nil || ended != nil {
			t.Errorf("parent %d: %v, %v", parent, ended, err)
		}
	}
}

// A busy machine may deliver a signal to leasehold late. By then CMD, which received the
// same signal, has already ended.
func TestSignalSentBeforeExitOfCMDIsNotMissed(t *testing.T) {
	s := CatchSignals()
	defer s.Release()
	for range 100 {
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		told := s.end()
		select {
		case sig := <-s.C:
			if !told || sig != syscall.SIGTERM || len(s.C) != 0 {
				t.Fatalf("told to end: %v; the next wait gets %v and %d more", told, sig, len(s.C))
			}
		case <-time.After(10 * time.Second):
			t.Fatal("the signal never came")
		}
	}
}
