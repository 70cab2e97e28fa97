package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestHasEndedReturnsTrueOnlyAfterCMDHasExited(t *testing.T) {
	ended, runs := exec.Command("true"), exec.Command("sleep", "60")
	for _, cmd := range []*exec.Cmd{ended, runs} {
		lab.OK(t, cmd.Start())
	}
	defer func() {
		_ = runs.Process.Kill()
		_, _ = ended.Wait(), runs.Wait()
	}()
	c := &Child{cmd: ended, Exited: make(chan struct{})}
	for deadline := time.Now().Add(time.Minute); !c.hasEnded() && time.Now().Before(deadline); {
		runtime.Gosched()
	}
	lab.Want(t, "an ended CMD has ended", c.hasEnded(), true)
	lab.Want(t, "a running CMD has ended", (&Child{cmd: runs}).hasEnded(), false)
}

// standsAtGate is the name of an environment variable. If it is set, this test program
// calls standAtGate instead of running tests.
const standsAtGate = "TEST_STANDS_AT_GATE"

func TestMain(m *testing.M) {
	if os.Getenv(standsAtGate) != "" {
		standAtGate()
	}
	os.Exit(m.Run())
}

// standAtGate starts CMD as leasehold run does, but without a watchdog. It writes the order for
// the watchdog, with the id of CMD's process group, to stdout, where the test reads it. It then
// waits, without opening the gate, until the test kills this process.
func standAtGate() {
	self, err := ThisProgram()
	if err != nil {
		panic(err)
	}
	s := &supervision{
		self:     self,
		lock:     &several{},
		watchdog: &watchdogHandle{orders: stuck{}},
		Job:      Job{Cmd: &exec.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", "echo 1 >ran; sleep 300"}, Env: os.Environ(), Stderr: os.Stderr}},
	}
	_, err = s.start()
	panic(fmt.Sprint("start returned: ", err))
}

type stuck struct{}

func (stuck) Write(order []byte) (int, error) {
	_, _ = os.Stdout.Write(order)
	select {}
}

func (stuck) Close() error { return nil }

func TestCMDNeverStartsAfterLeaseholdIsKilled(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(lab.Must(os.Executable())(t))
	cmd.Dir, cmd.Env = dir, append(os.Environ(), standsAtGate+"=1")
	stdout := lab.Must(cmd.StdoutPipe())(t)
	lab.OK(t, cmd.Start())
	var group int
	lab.WantErr(t, "the order", lab.ErrorOf(fmt.Fscanf(stdout, "group %d\n", &group)), nil)
	eventually(t, "the child waits at the gate", func() bool {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", group))
		return err == nil && strings.HasPrefix(string(b), "leasehold\x00gate\x00")
	})
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	eventually(t, "the child at the gate has exited", func() bool { return isDead(group) })
	lab.WantNoFile(t, "file that CMD writes", filepath.Join(dir, "ran"))
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	const patience = time.Minute
	for deadline := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

func isDead(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return strings.HasPrefix(rest, "Z") || strings.HasPrefix(rest, "X")
}
