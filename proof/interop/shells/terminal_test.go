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

// patience limits how long a test waits for a shell to react.
const patience = time.Minute

// Bytes that a terminal sends for the keys TAB, Enter and Ctrl-T. Each shell binds Ctrl-T to a
// function that writes the edited line to a pipe for the test. The shell calls this function only
// when it has handled all earlier keys.
const (
	tab   = "\t"
	enter = "\r"
	tell  = "\x14" // Ctrl-T
)

// terminal is a pseudo-terminal in which a shell runs. Only the goroutine of the test may use it.
type terminal struct {
	t      *testing.T
	keys   *os.File
	screen *screen
	lines  *os.File
	told   *bufio.Reader
	prompt int
}

// newTerminal starts a shell in the directory dir. The shell's prompts are prompt1>, prompt2>,
// and so on. The environment variable LINES_TO contains the path of the pipe to which the shell
// writes its edited line. The test's cleanup kills the shell.
func newTerminal(t *testing.T, dir string, env, command []string) *terminal {
	t.Helper()
	pipe := filepath.Join(t.TempDir(), "lines")
	lab.OK(t, unix.Mkfifo(pipe, 0o600))
	// Without O_RDWR, this call would block until the shell opens the pipe, and reads would return
	// EOF when the shell closes the pipe.
	lines := lab.Must(os.OpenFile(pipe, os.O_RDWR, 0))(t)
	keys, tty, err := pty.Open()
	lab.OK(t, err)
	// The terminal is so wide that no line wraps.
	lab.OK(t, pty.Setsize(keys, &pty.Winsize{Rows: 200, Cols: 1000}))
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Env = dir, append(env, "LINES_TO="+pipe)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	shell := lab.Must(process.Start(cmd))(t)
	_ = tty.Close() // the shell has its own descriptor of the terminal
	term := &terminal{t: t, keys: keys, screen: &screen{changed: make(chan struct{})}, lines: lines, told: bufio.NewReader(lines)}
	drawn := make(chan struct{})
	go func() {
		defer close(drawn)
		_, _ = bufio.NewReader(keys).WriteTo(term.screen) // copies the output of the shell until the shell ends
	}()
	t.Cleanup(func() {
		lab.OK(t, shell.Kill())
		_, _ = keys.Close(), lines.Close() // ignores errors, because the shell has been killed
		<-drawn
	})
	term.awaitPrompt()
	return term
}

// press sends keys to the shell, as if a user typed them.
func (term *terminal) press(keys ...string) {
	term.t.Helper()
	if _, err := term.keys.WriteString(strings.Join(keys, "")); err != nil {
		term.t.Fatalf("%v; the screen: %q", err, term.screen)
	}
}

// line returns the command line that is being edited in the shell.
func (term *terminal) line() string {
	term.t.Helper()
	lab.OK(term.t, term.lines.SetReadDeadline(time.Now().Add(patience)))
	term.press(tell)
	line, err := term.told.ReadString(0)
	if err != nil {
		term.t.Fatalf("the shell did not write its line: %v; the screen: %q", err, term.screen)
	}
	return strings.TrimSuffix(line, "\x00")
}

// awaitPrompt waits until the shell has printed its next prompt.
func (term *terminal) awaitPrompt() {
	term.t.Helper()
	term.prompt++
	if want := fmt.Sprintf("prompt%d>", term.prompt); !term.screen.shows(want) {
		term.t.Fatalf("no %s; the screen: %q", want, term.screen)
	}
}

// screen contains everything that the shell has written to the terminal. It is safe for
// concurrent use.
type screen struct {
	mu      sync.Mutex
	all     []byte
	changed chan struct{} // each Write closes this channel and sets a new one
}

// Write appends p to the screen. It never fails.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, p...)
	close(s.changed)
	s.changed = make(chan struct{})
	return len(p), nil
}

// shows waits until the shell has written the text "want", and returns true. It returns false if
// this takes longer than the limit "patience".
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
