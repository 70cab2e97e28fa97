//go:build linux

package install

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Debian returns the path of a program. If the program is not on PATH and this process runs
// as root, Debian installs the given Debian packages. Processes that install at the same
// time take turns.
func Debian(ctx context.Context, program string, packages ...string) (string, error) {
	found := func() bool { return Require(program, "") == nil }
	if err := debian(ctx, program, found, packages); err != nil {
		return "", err
	}
	return exec.LookPath(program)
}

// DebianFile installs the given Debian packages, unless the file at path exists. Use it for
// packages that contain no program.
func DebianFile(ctx context.Context, path string, packages ...string) error {
	return debian(ctx, path, func() bool {
		_, err := os.Stat(path)
		return err == nil
	}, packages)
}

// debian installs the given Debian packages, unless found returns true. If found still
// returns false after the installation, debian returns an error.
func debian(ctx context.Context, what string, found func() bool, packages []string) error {
	if found() {
		return nil
	}
	root, err := folder()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(root, 0o750); err != nil {
		return fmt.Errorf("install: make the folder of installs: %w", err)
	}
	unlock, err := lock(filepath.Join(root, "lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if found() { // another process has installed the program while this process waited for the lock
		return nil
	}
	if os.Getuid() != 0 || Require("apt-get", "") != nil {
		return fmt.Errorf("install: %s is not there, and only root can install it: apt-get install %s", what, strings.Join(packages, " "))
	}
	apt := func(args ...string) error {
		// With these options, apt-get waits for another process that holds dpkg's lock, and
		// retries failed downloads.
		options := []string{"-q", "-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=3"}
		return Run(ctx, "/", "env", append(append([]string{"DEBIAN_FRONTEND=noninteractive", "apt-get"}, options...), args...)...)
	}
	if err := apt("update"); err != nil {
		return fmt.Errorf("install %s: %w", what, err)
	}
	if err := apt(append([]string{"install", "-y", "--no-install-recommends"}, packages...)...); err != nil {
		return fmt.Errorf("install %s: %w", what, err)
	}
	if !found() {
		return fmt.Errorf("install: %s is not in the packages %s", what, strings.Join(packages, " "))
	}
	return nil
}
