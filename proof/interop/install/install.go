//go:build linux

// Package install installs third-party programs once for all processes of a machine. The
// programs are installed in .engines at the root of the repository, or in the folder whose
// path is in the environment variable LEASEHOLD_ENGINES.
package install

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Once returns the folder with the given name. If the folder does not exist, the function fill
// writes the files to the temporary folder dir, which Once then renames. So no file may contain the
// temporary path. A filled folder never changes, so its name must contain the program's version.
func Once(ctx context.Context, name string, fill func(ctx context.Context, dir string) error) (dir string, err error) {
	root, err := folder()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(root, name)
	if installed(dir) {
		return dir, nil
	}
	if err := os.MkdirAll(root, 0o750); err != nil {
		return "", fmt.Errorf("install: make the folder of installs: %w", err)
	}
	unlock, err := lock(filepath.Join(root, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if installed(dir) { // another process has filled the folder while this process waited for the lock
		return dir, nil
	}
	// The folder gets its final name last, so that an interrupted installation never seems
	// complete.
	unfinished, err := os.MkdirTemp(root, name+"-unfinished-")
	if err != nil {
		return "", fmt.Errorf("install: make the folder of %s: %w", name, err)
	}
	defer os.RemoveAll(unfinished)
	if err := fill(ctx, unfinished); err != nil {
		return "", fmt.Errorf("install %s: %w", name, err)
	}
	if err := os.Rename(unfinished, dir); err != nil {
		return "", fmt.Errorf("install: name the folder of %s: %w", name, err)
	}
	return dir, nil
}

// Run runs a command in dir. If the command fails, the error contains the command's output.
func Run(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}

// Require returns an error if the program is not on PATH. The error contains the parameter "how":
// instructions to install the program.
func Require(program, how string) error {
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("%s is not on PATH: %s", program, how)
	}
	return nil
}

// Files writes the given files, a map from name to content, into the folder dir.
func Files(dir string, files map[string][]byte) error {
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func installed(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir()
}

// folder returns the folder that contains all installations.
func folder() (string, error) {
	if dir := os.Getenv("LEASEHOLD_ENGINES"); dir != "" {
		return filepath.Abs(dir)
	}
	at, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("install: find the repository: %w", err)
	}
	for dir := at; ; dir = filepath.Dir(dir) {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(mod), "module github.com/leasehold-go/leasehold\n") {
			return filepath.Join(dir, ".engines"), nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("install: %s is not inside the repository: set LEASEHOLD_ENGINES to a folder for servers and peers", at)
		}
	}
}

// lock waits for the file lock at path, and returns a function that unlocks it.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("install: lock the folder of installs: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("install: lock %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}
