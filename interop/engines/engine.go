//go:build linux

package engines

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Engine is a server that this package can install and start.
type Engine struct {
	Name    string // as conformance cases and error messages call it
	Version string // the only one installed

	// install puts the engine into the empty folder dir.
	install func(ctx context.Context, dir string) error
	// start starts what install left in dir.
	start func(ctx context.Context, dir string) (*Server, error)
}

// All returns every engine, the quick one first.
func All() []Engine { return []Engine{Dynoxide, DynamoDBLocal} }

// Find returns the engine of that name.
func Find(name string) (Engine, error) {
	var names []string
	for _, e := range All() {
		if e.Name == name {
			return e, nil
		}
		names = append(names, e.Name)
	}
	return Engine{}, fmt.Errorf("engines: no engine %q: there are %s", name, strings.Join(names, " and "))
}

// Install installs the engine unless it is there already, and returns its
// folder. Processes that install at the same time take turns.
func (e Engine) Install(ctx context.Context) (string, error) {
	root, err := folder()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, e.Name+"-"+e.Version)
	if installed(dir) {
		return dir, nil
	}
	if err := os.MkdirAll(root, 0o750); err != nil {
		return "", fmt.Errorf("engines: make the folder for engines: %w", err)
	}
	unlock, err := lock(filepath.Join(root, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if installed(dir) { // by whoever had the lock before us
		return dir, nil
	}
	// The folder gets its name last, so that an interrupted install is never
	// taken for a whole one.
	unfinished, err := os.MkdirTemp(root, e.Name+"-unfinished-")
	if err != nil {
		return "", fmt.Errorf("engines: make the folder of %s: %w", e.Name, err)
	}
	defer os.RemoveAll(unfinished)
	if err := e.install(ctx, unfinished); err != nil {
		return "", fmt.Errorf("engines: install %s %s: %w", e.Name, e.Version, err)
	}
	if err := os.Rename(unfinished, dir); err != nil {
		return "", fmt.Errorf("engines: name the folder of %s: %w", e.Name, err)
	}
	return dir, nil
}

// Start installs the engine if need be and starts it with no tables. It returns
// when the server answers; ctx bounds the install and the wait, not the
// server's life, which ends with [Server.Stop] or with this process.
func (e Engine) Start(ctx context.Context) (*Server, error) {
	dir, err := e.Install(ctx)
	if err != nil {
		return nil, err
	}
	server, err := e.start(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("engines: start %s: %w", e.Name, err)
	}
	server.Name = e.Name
	if err := server.waitUntilReady(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("engines: %s did not answer: %w", e.Name, err), server.Stop())
	}
	return server, nil
}

func installed(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir()
}

// folder is where engines are kept.
func folder() (string, error) {
	if dir := os.Getenv("LEASEHOLD_ENGINES"); dir != "" {
		return filepath.Abs(dir)
	}
	at, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("engines: find the repository: %w", err)
	}
	for dir := at; ; dir = filepath.Dir(dir) {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(mod), "module github.com/leasehold-go/leasehold\n") {
			return filepath.Join(dir, ".engines"), nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("engines: %s is not inside the repository: set LEASEHOLD_ENGINES to a folder for the engines", at)
		}
	}
}

// lock takes the file lock at path, waiting for it.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("engines: lock the folder of engines: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("engines: lock %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}

// run runs a command and, when it fails, returns what it printed.
func run(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}

// require returns an error if a program is not on PATH.
func require(program, how string) error {
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("%s is not on PATH: %s", program, how)
	}
	return nil
}
