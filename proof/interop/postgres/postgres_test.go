//go:build linux

package postgres

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestMain(m *testing.M) {
	if os.Getenv("LEASEHOLD_POSTGRES_HOLD") != "" {
		hold()
	}
	goleak.VerifyTestMain(m)
}

func TestPostgresHasPinnedVersionAndNoTCPPort(t *testing.T) {
	pool := Run(t)
	for setting, want := range map[string]string{"server_version": Version, "listen_addresses": ""} {
		var got string
		if err := pool.QueryRow(t.Context(), "SELECT current_setting($1)", setting).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q (%v), want %q", setting, got, err, want)
		}
	}
}

func TestStoppedPostgresLeavesNoProcessOrFiles(t *testing.T) {
	s := lab.Must(start(t.Context()))(t)
	lab.OK(t, s.stop())
	select {
	case <-s.process.Ended():
	default:
		t.Error("the process is still running")
	}
	lab.WantNoFile(t, "folder of the stopped server", s.dir)
}

func TestPostgresEndsWhenParentIsKilled(t *testing.T) {
	dir := lab.Must(os.MkdirTemp("", "leasehold-"))(t) //nolint:usetesting // t.TempDir is too long: the path of a Unix socket has room for 107 bytes
	defer os.RemoveAll(dir)
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), "LEASEHOLD_POSTGRES_HOLD=1", "TMPDIR="+dir)
	parent.Stderr = os.Stderr
	stdout := lab.Must(parent.StdoutPipe())(t)
	lab.OK(t, parent.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	pid, notNumber := strconv.Atoi(strings.TrimSpace(line))
	fd, gone := unix.PidfdOpen(pid, 0)
	if err := errors.Join(err, notNumber, gone, parent.Process.Kill()); err != nil {
		t.Fatalf("the parent printed %q: %v", line, err)
	}
	defer unix.Close(fd)
	_ = parent.Wait() // ignores the error, which only says that the parent was killed
	ended := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	const minute = 60_000
	if n, err := unix.Poll(ended, minute); n != 1 {
		t.Errorf("process %d is still running (%v)", pid, err)
	}
}

// hold runs in a child process of TestPostgresEndsWhenParentIsKilled. It starts PostgreSQL, prints
// the process ID of PostgreSQL, and then waits until the test kills the child process.
func hold() {
	s, err := start(context.Background())
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(s.process.PID())
	select {}
}

func TestInstallErrorSaysHowToInstallMissingNodeJS(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("LEASEHOLD_ENGINES", t.TempDir())
	err := lab.ErrorOf(Install(t.Context()))
	lab.WantText(t, "Install", err, "npm is not on PATH", "node is not on PATH", "apt-get install npm")
}
