//go:build linux

package ui

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/proof/interop/browser"
	"github.com/leasehold-go/leasehold/proof/interop/process"
)

// chromium is the browser that all tests share.
var chromium browser.Shared

// patience limits how long a test waits for a process to react.
const patience = time.Minute

func TestMain(m *testing.M) {
	code := m.Run()
	chromium.Stop()
	if command.dir != "" {
		_ = os.RemoveAll(command.dir)
	}
	os.Exit(code)
}

// The variable "command" contains the directory of the leasehold executable, or the error of its
// build. The first test that needs the executable builds it for all tests.
var command struct {
	once sync.Once
	dir  string
	err  error
}

// leasehold returns the path of the leasehold command, which it builds at the first call.
func leasehold(t testing.TB) string {
	t.Helper()
	command.once.Do(func() {
		if command.dir, command.err = os.MkdirTemp("", "leasehold-ui-"); command.err != nil { //nolint:usetesting // the folder must outlive the first test
			return
		}
		build := exec.Command("go", "build", "-o", command.dir, "./cmd/leasehold")
		build.Dir = filepath.Join("..", "..", "..")
		if out, err := build.CombinedOutput(); err != nil {
			command.err = errors.New(string(out))
		}
	})
	lab.OK(t, command.err)
	return filepath.Join(command.dir, "leasehold")
}

// scene is a lock table, with the processes that hold and await its locks.
type scene struct {
	t   testing.TB
	dir string
	env []string

	local *running // process that serves the table
}

// newScene returns a scene with an empty lock table. The command
// "leasehold local" serves the table.
func newScene(t testing.TB) *scene {
	t.Helper()
	s := &scene{t: t, dir: t.TempDir()}
	s.env = []string{"HOME=" + s.dir, "PATH=" + os.Getenv("PATH"), "AWS_EC2_METADATA_DISABLED=true", "GORACE=atexit_sleep_ms=0",
		"AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local"}
	s.local = s.start("local", "--addr", "127.0.0.1:0")
	s.env = append(s.env, "AWS_ENDPOINT_URL_DYNAMODB="+s.local.line(), "LEASEHOLD_TABLE=locks")
	s.run("table", "create")
	return s
}

// run runs the leasehold command, waits for its end, and returns its output.
func (s *scene) run(args ...string) string {
	s.t.Helper()
	cmd := s.command(args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("leasehold %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

// command returns the leasehold command with the given arguments. An argument that begins
// with LEASEHOLD_ becomes an environment variable instead.
func (s *scene) command(args ...string) *exec.Cmd {
	s.t.Helper()
	cmd := exec.Command(leasehold(s.t))
	cmd.Dir, cmd.Env = s.dir, slices.Clip(s.env)
	for _, arg := range args {
		if strings.HasPrefix(arg, "LEASEHOLD_") {
			cmd.Env = append(cmd.Env, arg)
		} else {
			cmd.Args = append(cmd.Args, arg)
		}
	}
	return cmd
}

// running is a process that runs the leasehold command.
type running struct {
	t       testing.TB
	args    string
	process *process.Process
	lines   chan string
	stderr  *process.Tail
}

// start starts the leasehold command. The command is killed when the test ends.
func (s *scene) start(args ...string) *running {
	s.t.Helper()
	r := &running{t: s.t, args: strings.Join(args, " "), lines: make(chan string, 100), stderr: &process.Tail{}}
	cmd := s.command(args...)
	cmd.Stderr = r.stderr
	in, out := io.Pipe()
	cmd.Stdout = out
	r.process = lab.Must(process.Start(cmd))(s.t)
	go func() {
		<-r.process.Ended()
		_ = out.Close()
	}()
	go func() {
		defer close(r.lines)
		for lines := bufio.NewScanner(in); lines.Scan(); {
			r.lines <- lines.Text()
		}
	}()
	s.t.Cleanup(r.kill)
	return r
}

// line waits for the next line that the command prints, and returns it.
func (r *running) line() string {
	r.t.Helper()
	select {
	case line, ok := <-r.lines:
		if ok {
			return line
		}
		r.t.Fatalf("leasehold %s ended: %v\n%s", r.args, r.process.Err(), r.stderr)
	case <-time.After(patience):
		r.t.Fatalf("leasehold %s printed nothing\n%s", r.args, r.stderr)
	}
	return ""
}

// kill ends the command with SIGKILL.
func (r *running) kill() {
	if err := r.process.Kill(); err != nil {
		r.t.Error(err)
	}
}

// interrupt sends SIGINT to the command, as Ctrl-C does.
func (r *running) interrupt() {
	r.t.Helper()
	lab.OK(r.t, r.process.Signal(syscall.SIGINT))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	select {
	case <-r.process.Ended():
	case <-ctx.Done():
		r.t.Fatalf("leasehold %s still runs after Ctrl-C\n%s", r.args, r.stderr)
	}
}

// holder is a leasehold process that holds a key.
type holder struct {
	*running
	token string
}

// hold starts a process that holds the key until the process ends. It returns once the
// process holds the key.
func (s *scene) hold(key string, flags ...string) *holder {
	s.t.Helper()
	h := &holder{running: s.wait(key, flags...)}
	h.token = h.line()
	return h
}

// wait starts a process that waits for the key and then holds it.
func (s *scene) wait(key string, flags ...string) *running {
	s.t.Helper()
	args := append([]string{"run", key}, flags...)
	return s.start(append(args, "--", "sh", "-c", "echo $LEASEHOLD_TOKEN; exec sleep 600")...)
}

// short contains the flags for a lease of two seconds, and long those for a lease of five. Some
// states are visible only if the page polls several times during a lease. Tests of such states use
// the long lease, because polls are slow on a busy machine.
var (
	short = []string{"-l", "2s", "-g", "200ms"}
	long  = []string{"-l", "5s"}
)

// freePort returns a port at which no server listens. It is below the ports that the kernel
// chooses, so the kernel gives it to no other process. It is above the port 10080, which Chromium
// blocks.
func freePort(t testing.TB) string {
	t.Helper()
	for {
		port := strconv.Itoa(11_000 + rand.IntN(20_000))
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			lab.OK(t, l.Close())
			return port
		}
	}
}

// page is a browser tab that shows the page of a leasehold ui process.
type page struct {
	*browser.Page
	url    string
	server *running
}

// ui starts a leasehold ui process, and opens its page in the browser.
func (s *scene) ui(flags ...string) *page {
	s.t.Helper()
	tab := chromium.Page(s.t)
	server := s.start(append([]string{"ui"}, flags...)...)
	p := &page{Page: tab, url: server.line(), server: server}
	p.Open(p.url)
	p.Wait(`document.getElementById("live").textContent === "live"`)
	return p
}

// newPage returns a scene, and the page of a leasehold ui process for the scene's empty lock table.
func newPage(t testing.TB, flags ...string) (*scene, *page) {
	t.Helper()
	s := newScene(t)
	return s, s.ui(flags...)
}

// clickBreak clicks the break button of a lock's view, and waits for the dialog.
func (p *page) clickBreak() {
	p.Wait(`!document.querySelector("#lock button.danger").hidden`)
	p.Run(`document.querySelector("#lock button.danger").click()`)
	p.Wait(`document.getElementById("typed")`)
}

// origin returns the page's URL up to and including the port.
func (p *page) origin() string {
	u := lab.Must(url.Parse(p.url))(p.server.t)
	return u.Scheme + "://" + u.Host
}

// The method "to" opens another view of the page, as if the user followed a link.
func (p *page) to(query string) {
	p.Open(p.origin() + "/" + query)
	p.Wait(`document.getElementById("live").textContent === "live"`)
}

// js returns a value as a JavaScript literal.
func js(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// rowOf returns a JavaScript expression for the table row of a key.
func rowOf(key string) string {
	return `[...document.querySelectorAll(".row")].find((r) => r.querySelector("a").textContent === ` + js(key) + `)`
}

// says returns a JavaScript expression that is true if the table row of the key shows all the
// words.
func says(key string, words ...string) string {
	return js(words) + `.every((w) => ` + rowOf(key) + `.innerText.includes(w))`
}

// read returns the content of a file.
func read(t testing.TB, path ...string) string {
	t.Helper()
	return string(lab.Must(os.ReadFile(filepath.Join(path...)))(t))
}
