//go:build linux

package languages

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/proof/interop/process"
)

// machine simulates a machine on which programs hold locks. The leasehold command is in its
// PATH, and the locks are in a file.
type machine struct {
	t   *testing.T
	dir string
	env []string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{t: t, dir: t.TempDir()}
	for _, name := range []string{"leasehold.py", "leasehold.mjs", "testdata/job.py", "testdata/job.mjs"} {
		content := lab.Must(os.ReadFile(name))(t)
		lab.OK(t, os.WriteFile(filepath.Join(m.dir, filepath.Base(name)), content, 0o600))
	}
	m.env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "AWS_") || strings.HasPrefix(v, "LEASEHOLD_")
	}), "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+m.dir, "LEASEHOLD_FILE="+filepath.Join(m.dir, "locks.db"))
	return m
}

// program is a running process that holds a lock. The test reads its output.
type program struct {
	*process.Process
	t     *testing.T
	says  *bufio.Reader
	stdin io.Writer
}

// start starts testdata/job.py or testdata/job.mjs, a program that holds a lock. If "until" is
// "lost", the program ends when leasehold notifies it that its lock is lost. Otherwise it ends when
// it reads a line from stdin.
func (m *machine) start(language, until, key string, flags ...string) *program {
	m.t.Helper()
	job := map[string][]string{"Python": {"python3", "job.py"}, "Node": {"node", "job.mjs"}}[language]
	cmd := exec.Command(job[0], slices.Concat(job[1:], []string{until, key}, flags)...)
	cmd.Dir, cmd.Env, cmd.Stderr = m.dir, m.env, m.t.Output()
	stdin, asks, err := os.Pipe()
	lab.OK(m.t, err)
	says, stdout, err := os.Pipe()
	lab.OK(m.t, err)
	cmd.Stdin, cmd.Stdout = stdin, stdout
	p, err := process.Start(cmd)
	lab.OK(m.t, err)
	_, _ = stdin.Close(), stdout.Close()
	m.t.Cleanup(func() {
		_, _ = asks.Close(), p.Kill()
		_ = says.Close()
	})
	return &program{p, m.t, bufio.NewReader(says), asks}
}

// said waits for the next line that the program prints, and fails the test unless the line
// matches want.
func (p *program) said(want string) string {
	p.t.Helper()
	line, err := p.says.ReadString('\n')
	if err != nil || !regexp.MustCompile("^"+want+"\n$").MatchString(line) {
		p.t.Fatalf("the program printed %q, %v; want %s", line, err, want)
	}
	return strings.TrimSpace(line)
}

// held reports whether the key is held. To find out, it tries to acquire the key without waiting.
func (m *machine) held(key string) bool {
	m.t.Helper()
	return m.leasehold("run", "-n", "-E", "1", key, "--", "true") == 1
}

// leasehold runs the leasehold command, and returns its exit code.
func (m *machine) leasehold(args ...string) int {
	m.t.Helper()
	cmd := exec.Command(filepath.Join(bin, "leasehold"), args...)
	cmd.Env = m.env
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == 1:
		return 1
	case err != nil:
		m.t.Fatalf("leasehold %q: %v: %s", args, err, out)
	}
	return 0
}

// inEach runs a test once for each language.
func inEach(t *testing.T, test func(t *testing.T, m *machine, language string)) {
	for _, language := range []string{"Python", "Node"} {
		t.Run(language, func(t *testing.T) { test(t, newMachine(t), language) })
	}
}

func TestPythonAndNodeHoldLockUntilWorkIsDone(t *testing.T) {
	inEach(t, func(t *testing.T, m *machine, language string) {
		p := m.start(language, "done", "report")
		p.said(`granted \d+`)
		lab.Want(t, "the key is held while the program works", m.held("report"), true)
		lab.Must(io.WriteString(p.stdin, "\n"))(t)
		p.said("done")
		<-p.Ended()
		lab.OK(t, p.Err())
		lab.Want(t, "the key is held after the program has ended", m.held("report"), false)
	})
}

func TestPythonAndNodeAreNotifiedOfLostLock(t *testing.T) {
	inEach(t, func(t *testing.T, m *machine, language string) {
		p := m.start(language, "lost", "report", "-l", "1s")
		token := strings.TrimPrefix(p.said(`granted \d+`), "granted ")
		lab.Want(t, "exit code of break", m.leasehold("break", "report", "--yes", "--token", token), 0)
		p.said("told")
		p.said("Lost")
		<-p.Ended()
	})
}

func TestLockOfKilledPythonOrNodeProgramIsReleased(t *testing.T) {
	inEach(t, func(t *testing.T, m *machine, language string) {
		p := m.start(language, "done", "report", "-l", "1h")
		p.said(`granted \d+`)
		lab.OK(t, p.Kill())
		lab.Want(t, "exit code of leasehold run after the kill", m.leasehold("run", "-w", "5m", "report", "--", "true"), 0)
	})
}

func TestPythonAndNodeReportHeldKeyIfToldNotToWait(t *testing.T) {
	inEach(t, func(t *testing.T, m *machine, language string) {
		first := m.start(language, "done", "report")
		first.said(`granted \d+`)
		second := m.start(language, "done", "report", "-n")
		second.said("NotGranted")
		<-second.Ended()
	})
}
