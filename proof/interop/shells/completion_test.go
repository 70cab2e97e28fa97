//go:build linux

package shells

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hostile contains names with shell syntax. A shell that evaluates such a name would run
// the program "intrude", or create a file.
var hostile = []string{
	"`intrude`", "$(intrude)", "(intrude)", "$((x[$(intrude)]))", "${x:=`intrude`}", "<(intrude)", ">(intrude)", "=(intrude)", "{intrude,}",
	";intrude;", "&intrude&", "|intrude|", "||intrude||", "\nintrude\n", ">made", "<>made", " >made ", "';intrude;'", "\";intrude;\"", "'$(intrude)",
	"\"$(intrude)", "\\", "\\$(intrude)", "*", "?", "[a-z]*", "~", "!intrude", "#", "%", "^", " ", "\t", "\x1b[201~", "\x03", "\x15intrude\r", "$HOME", "é`intrude`",
}

// scene is a lock table in a file, and a directory of files. Both contain names that a
// hostile user has chosen.
type scene struct {
	env      []string
	dir      string // working directory of the shell
	home     string
	intruded string // file that the program intrude creates
}

func newScene(t *testing.T) *scene {
	t.Helper()
	top := t.TempDir()
	s := &scene{dir: filepath.Join(top, "work"), home: filepath.Join(top, "home"), intruded: filepath.Join(top, "intruded")}
	bin := filepath.Join(top, "bin")
	for _, folder := range []string{s.dir, s.home, bin} {
		lab.OK(t, os.Mkdir(folder, 0o700))
	}
	lab.OK(t, os.WriteFile(filepath.Join(bin, "intrude"), []byte("#!/bin/sh\n: >'"+s.intruded+"'\n"), 0o700))
	build := exec.Command("go", "build", "-o", bin, "./cmd/leasehold")
	build.Dir = filepath.Join("..", "..", "..")
	lab.Output(t, build)
	s.env = []string{
		"PATH=" + bin + ":/usr/local/bin:/usr/bin:/bin", "HOME=" + s.home, "TERM=xterm", "LANG=C.UTF-8",
		"LEASEHOLD_FILE=" + filepath.Join(top, "locks.db"), "AWS_EC2_METADATA_DISABLED=true",
	}
	return s
}

// store acquires and releases the keys as the given owner. The table keeps the records of released
// keys. One "leasehold run" acquires, together, all keys that contain no line break. Each other key
// has its own "leasehold run".
func (s *scene) store(t *testing.T, owner string, keys ...string) {
	t.Helper()
	together := []string{"run", "-q"}
	for _, key := range keys {
		if strings.Contains(key, "\n") {
			s.leasehold(t, owner, "run", "-q", "--key="+key, "--", "true")
		} else {
			together = append(together, "--key="+key)
		}
	}
	s.leasehold(t, owner, append(together, "--", "true")...)
}

// leasehold runs the leasehold command as the given owner.
func (s *scene) leasehold(t *testing.T, owner string, args ...string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(filepath.Dir(s.dir), "bin", "leasehold"), args...)
	cmd.Env = append(slices.Clone(s.env), "LEASEHOLD_OWNER="+owner)
	lab.Output(t, cmd)
}

// write creates a file in the working directory of the shell.
func (s *scene) write(t *testing.T, name string) {
	t.Helper()
	lab.OK(t, os.WriteFile(filepath.Join(s.dir, name), nil, 0o600))
}

// calm fails the test if the shell has run text that another user wrote.
func (s *scene) calm(t *testing.T, line string) {
	t.Helper()
	if _, err := os.Stat(s.intruded); err == nil {
		t.Fatalf("with %q on the line, the shell ran text that another user wrote", line)
	}
	for _, e := range lab.Must(os.ReadDir(s.dir))(t) {
		if !strings.HasPrefix(e.Name(), "file") {
			t.Fatalf("with %q on the line, the shell created the file %q", line, e.Name())
		}
	}
}

// populate stores hostile keys, owners and files. For each hostile name, it stores two keys, which
// differ only in the character after the name. So a shell that completes a line to the common
// beginning of the two keys would insert the whole name.
func (s *scene) populate(t *testing.T) {
	t.Helper()
	first, second, mixed := []string{"plain/one"}, []string{"`intrude`", "-`intrude`"}, []string{"mixed/one"}
	for i, name := range hostile {
		first = append(first, fmt.Sprintf("key%d/%s1", i, name))
		second = append(second, fmt.Sprintf("key%d/%s2", i, name))
		mixed = append(mixed, "mixed/"+name)
		s.write(t, fmt.Sprintf("file%d-%s", i, name))
	}
	s.store(t, "`intrude`", first...)
	s.store(t, "$(intrude)", second...)
	s.store(t, "(intrude)", mixed...)
	s.leasehold(t, "{intrude,}", "acquire", "-q", "-l", "1h", "--", "$(intrude)") // leaves this key held, because "leasehold break" completes only held keys
}

// TestTabCompletionDoesNotExecuteKeysOrFileNames types command lines into each shell. Pressing
// TAB, TAB again, and Enter must execute no text of a key, an owner or a file name. TAB
// must still complete plain names.
func TestTabCompletionDoesNotExecuteKeysOrFileNames(t *testing.T) {
	s := newScene(t)
	s.populate(t)
	for _, shell := range shells {
		t.Run(shell.name, func(t *testing.T) {
			_ = os.Remove(s.intruded) // the test of the previous shell may have left this file
			term := shell.start(t, s.dir, s.home, s.env)
			plainKeysAreCompleted(t, s, term)
			hostileKeysAreNot(t, s, term)
			filesAreCompletedAndNotRun(t, s, term)
			nothingOfAListRuns(t, s, term)
		})
	}
}

// plainKeysAreCompleted checks that TAB completes plain keys. The completion script reads keys for
// at most one second. On a busy machine this may not be enough, so the test presses TAB again.
func plainKeysAreCompleted(t *testing.T, s *scene, term *terminal) {
	t.Helper()
	for line, want := range map[string]string{"leasehold get pl": "leasehold get plain/one", "leasehold get mix": "leasehold get mixed/one"} {
		term.press(line, tab)
		done := term.line()
		for began := time.Now(); done == line && time.Since(began) < patience; done = term.line() {
			term.press(tab)
		}
		lab.Want(t, "completion of "+line, strings.TrimSpace(done), want)
		s.enter(t, term)
	}
}

// hostileKeysAreNot checks that TAB leaves the line unchanged if every matching key has
// characters that are special to a shell.
func hostileKeysAreNot(t *testing.T, s *scene, term *terminal) {
	t.Helper()
	for i := range hostile {
		line := fmt.Sprintf("leasehold get key%d/", i)
		term.press(line)
		for range 2 {
			lab.Want(t, "completion", s.tab(t, term), line)
		}
		s.enter(t, term)
	}
}

// filesAreCompletedAndNotRun checks how the shell itself completes file names. After the
// completion, neither another TAB nor Enter may make the shell evaluate the file name.
func filesAreCompletedAndNotRun(t *testing.T, s *scene, term *terminal) {
	t.Helper()
	for i, name := range hostile {
		line := fmt.Sprintf("leasehold run free -- cat file%d-", i)
		term.press(line)
		lab.Want(t, line+" is completed to the file with "+name, s.tab(t, term) != line, true)
		s.tab(t, term)
		term.press(" ")
		s.tab(t, term)
		s.tab(t, term)
		s.enter(t, term)
	}
}

// nothingOfAListRuns presses TAB until the shell lists all completions. It checks that the
// shell executes no text of this list.
func nothingOfAListRuns(t *testing.T, s *scene, term *terminal) {
	t.Helper()
	for _, line := range []string{
		"leasehold get ", "leasehold get -", "leasehold run ", "leasehold run --key ", "leasehold break ",
		"leasehold ls --table ", "leasehold run --data ", "leasehold ls --file ",
	} {
		term.press(line)
		for range 3 {
			s.tab(t, term)
		}
		s.enter(t, term)
	}
}

// tab presses TAB, and returns the command line after the completion.
func (s *scene) tab(t *testing.T, term *terminal) string {
	t.Helper()
	term.press(tab)
	line := term.line()
	s.calm(t, line)
	return line
}

// enter presses Enter and waits until the shell has run the line. It fails the test if the
// shell has run text that another user wrote.
func (s *scene) enter(t *testing.T, term *terminal) {
	t.Helper()
	line := term.line()
	term.press(enter)
	term.awaitPrompt()
	s.calm(t, line)
}
