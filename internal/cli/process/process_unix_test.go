//go:build unix

package process

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/watchdog"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// gatedCMD returns a CMD that creates a file, and a function that reports whether the file
// exists, which means that CMD has run.
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
	c, g, err := startAtGate(lab.Must(ThisProgram())(t), cmd)
	lab.OK(t, err)
	return c, g
}

// closeForGood closes the gate's connection without opening the gate. The kernel does the
// same when the supervisor dies.
func closeForGood(t *testing.T, g *gate) {
	t.Helper()
	conn, err := g.conn.SyscallConn()
	lab.OK(t, err)
	if ended := conn.Control(func(fd uintptr) { err = unix.Shutdown(int(fd), unix.SHUT_RDWR) }); ended != nil || err != nil {
		t.Error(ended, err)
	}
}

// ended waits until the child process has exited and g.passed is closed. It returns the exit
// code, and the error if CMD could not start.
func ended(c *Child, g *gate) (code int, refusal error) {
	<-c.Exited
	code = c.Reap()
	<-g.passed
	return code, g.execError(code)
}

func TestChildRunsCMDOnlyIfSupervisorOpensGate(t *testing.T) {
	type variant struct {
		does func(*Child, *gate)
		code int
		runs bool
	}
	lab.Variants(t, map[string]variant{
		"the gate opens":  {func(_ *Child, g *gate) { g.open() }, 0, true},
		"the gate closes": {func(_ *Child, g *gate) { closeForGood(t, g) }, failure.CodeNotRun, false},
		"a signal":        {func(c *Child, _ *gate) { c.Signal(syscall.SIGTERM) }, failure.CodeSignal + int(syscall.SIGTERM), false},
	}, func(t *testing.T, c variant) {
		cmd, hasRun := gatedCMD(t)
		child, g := startGated(t, cmd)
		c.does(child, g)
		if code, err := ended(child, g); code != c.code || hasRun() != c.runs || c.runs && err != nil {
			t.Errorf("exit code %d, %v, has run: %v; want %d and %v", code, err, hasRun(), c.code, c.runs)
		}
		g.open() // opening the gate now has no effect, because the process behind it has exited
	})
}

func TestSupervisorReceivesErrorIfChildCannotExecuteCMD(t *testing.T) {
	noFormat := filepath.Join(t.TempDir(), "no-format")
	lab.OK(t, os.WriteFile(noFormat, []byte("neither a script nor a program\n"), 0o700))
	for path, want := range map[string]syscall.Errno{
		noFormat: syscall.ENOEXEC, noFormat + "-either": syscall.ENOENT, filepath.Dir(noFormat): syscall.EACCES,
	} {
		c, g := startGated(t, &exec.Cmd{Path: path, Args: []string{"cmd"}, Stderr: os.Stderr})
		g.open()
		lab.WantErr(t, path, lab.ErrorOf(ended(c, g)), want)
	}
}

// orderTaker is a function that replaces the pipe to a watchdog. The method Write calls the
// function when the supervisor writes the order that contains the id of CMD's process group.
type orderTaker func()

func (f orderTaker) Write(order []byte) (int, error) {
	if strings.HasPrefix(string(order), watchdog.OrderGroup) {
		f()
	}
	return len(order), nil
}

func (orderTaker) Close() error { return nil }

func TestCMDRunsOnlyIfWatchdogKnowsProcessGroup(t *testing.T) {
	cmd, hasRun := gatedCMD(t)
	s := &supervision{Job: Job{Cmd: cmd}, self: lab.Must(ThisProgram())(t), lock: &several{}}
	s.watchdog = &watchdogHandle{orders: orderTaker(func() { closeForGood(t, s.gate) })}
	if code, _ := ended(lab.Must(s.start())(t), s.gate); code != failure.CodeNotRun || hasRun() {
		t.Errorf("exit code %d, has run: %v", code, hasRun())
	}
}

// losing is a Lock that is lost after the given number of calls of its method Err.
type losing struct {
	several
	after int
}

func (l *losing) Context() context.Context {
	ctx, lose := context.WithCancel(l.several.Context())
	lose()
	return ctx
}

func (l *losing) Err() error {
	if l.after--; l.after >= 0 {
		return nil
	}
	return leasehold.ErrLost
}

func TestCMDNeverRunsIfLockIsLostBefore(t *testing.T) {
	type variant struct {
		executable func() (string, error)
		lost       int
	}
	lab.Variants(t, map[string]variant{
		"no gate":                  {func() (string, error) { return "", errors.New("gone") }, 0},
		"before the child starts":  {ThisProgram, 0},
		"the child is at the gate": {ThisProgram, 1},
	}, func(t *testing.T, c variant) {
		cmd, hasRun := gatedCMD(t)
		lock := &losing{several{until: time.Now().Add(time.Minute)}, c.lost}
		_, err := Run(Job{Cmd: cmd, Executable: c.executable, Stop: syscall.SIGTERM}, lock, nil, &Signals{}, say.NewMessages(say.To(io.Discard, false)))
		if exit, is := failure.As[*failure.ExitError](err); !is || exit.Code != failure.CodeLost || !strings.HasSuffix(err.Error(), "; CMD was not run") || hasRun() {
			t.Errorf("%v, has run: %v", err, hasRun())
		}
	})
}

func TestParentEndReturnsErrorIfParentIsInit(t *testing.T) {
	was := parent
	t.Cleanup(func() { parent = was })
	for _, parent = range []int{0, 1} {
		if ended, err := ParentEnd(); err == nil || ended != nil {
			t.Errorf("parent %d: %v, %v", parent, ended, err)
		}
	}
}

// A signal may be sent to CMD and to leasehold at the same time. On a busy machine, CMD may exit
// because of the signal before leasehold receives it. When CMD has exited, leasehold calls the
// method "end", which must still notice the signal.
func TestSignalSentJustBeforeCMDExitsIsDetected(t *testing.T) {
	s := CatchSignals()
	defer s.Release()
	for range 100 {
		lab.OK(t, syscall.Kill(syscall.Getpid(), syscall.SIGTERM))
		told := s.end()
		select {
		case sig := <-s.C:
			if !told || sig != syscall.SIGTERM || len(s.C) != 0 {
				t.Fatalf("end returned %v; the next wait receives %v and %d more", told, sig, len(s.C))
			}
		case <-time.After(10 * time.Second):
			t.Fatal("the signal never arrived")
		}
	}
}
