//go:build linux

package shells

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/proof/interop/process"
)

// patience bounds every wait for a shell.
const patience = time.Minute

// These are keys as a terminal sends them. Each shell's settings bind the key tell to a
// function that writes the edited line to the pipe. The function runs after the shell has
// processed all earlier keys.
const (
	tab   = "\t"
	enter = "\r"
	tell  = "\x14" // Ctrl-T
)

// terminal is a shell on a terminal. Only the test's goroutine may use it.
type terminal struct {
	t      *testing.T
	keys   *os.File
	screen *screen
	lines  *os.File
	told   *bufio.Reader
	prompt int
}

// newTerminal starts a shell in dir. The shell prompts with prompt1>, prompt2>, … and
// writes edited lines to the pipe that LINES_TO names. The shell ends with the test.
func newTerminal(t *testing.T, dir string, env, command []string) *terminal {
	t.Helper()
	pipe := filepath.Join(t.TempDir(), "lines")
	lab.OK(t, unix.Mkfifo(pipe, 0o600))
	lines := lab.Must(os.OpenFile(pipe, os.O_RDWR, 0))(t) // with O_RDWR, opening does not wait for the shell, and reading does not end with the shell
	keys, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	// The terminal is so wide that no line wraps.
	lab.OK(t, pty.Setsize(keys, &pty.Winsize{Rows: 200, Cols: 1000}))
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Env = dir, append(env, "LINES_TO="+pipe)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	shell := lab.Must(process.Start(cmd))(t)
	_ = tty.Close() // the shell has its own descriptor
	term := &terminal{t: t, keys: keys, screen: &screen{changed: make(chan struct{})}, lines: lines, told: bufio.NewReader(lines)}
	drawn := make(chan struct{})
	go func() {
		defer close(drawn)
		_, _ = bufio.NewReader(keys).WriteTo(term.screen) // copies until the shell has ended
	}()
	t.Cleanup(func() {
		if err := shell.Kill(); err != nil {
			t.Error(err)
		}
		_, _ = keys.Close(), lines.Close() // errors do not matter, because the shell has been killed
		<-drawn
	})
	term.awaitPrompt()
	return term
}

// press sends keys.
func (term *terminal) press(keys ...string) {
	term.t.Helper()
	if _, err := term.keys.WriteString(strings.Join(keys, "")); err != nil {
		term.t.Fatalf("%v; the screen: %q", err, term.screen)
	}
}

// line returns the line that is being edited.
func (term *terminal) line() string {
	term.t.Helper()
	lab.OK(term.t, term.lines.SetReadDeadline(time.Now().Add(patience)))
	term.press(tell)
	line, err := term.told.ReadString(0)
	if err != nil {
		term.t.Fatalf("the shell does not tell its line: %v; the screen: %q", err, term.screen)
	}
	return strings.TrimSuffix(line, "\x00")
}

// awaitPrompt waits for the next prompt.
func (term *terminal) awaitPrompt() {
	term.t.Helper()
	term.prompt++
	if want := fmt.Sprintf("prompt%d>", term.prompt); !term.screen.shows(want) {
		term.t.Fatalf("no %s; the screen: %q", want, term.screen)
	}
}

// screen is all that was written to a terminal. It is safe for concurrent use.
type screen struct {
	mu      sync.Mutex
	all     []byte
	changed chan struct{} // closed and replaced by each Write
}

// Write never fails.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, p...)
	close(s.changed)
	s.changed = make(chan struct{})
	return len(p), nil
}

// shows waits until want has been written. It returns false if that takes longer than
// patience.
func (s *screen) shows(want string) bool {
	for late := time.After(patience); ; {
		s.mu.Lock()
		found, changed := bytes.Contains(s.all, []byte(want)), s.changed
		s.mu.Unlock()
		if found {
			return true
		}
		select {
		case <-changed:
		case <-late:
			return false
		}
	}
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.all[max(0, len(s.all)-4<<10):])
}
