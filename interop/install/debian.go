//go:build linux

package install

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Debian returns the path of a program, which it installs from Debian's packages if
// it is not on PATH and this process is root's. Processes that install at the same
// time take turns.
func Debian(ctx context.Context, program string, packages ...string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	root, err := folder()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(root, 0o750); err != nil {
		return "", fmt.Errorf("install: make the folder of installs: %w", err)
	}
	unlock, err := lock(filepath.Join(root, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if path, err := exec.LookPath(program); err == nil { // by whoever had the lock before us
		return path, nil
	}
	if os.Getuid() != 0 || Require("apt-get", "") != nil {
		return "", fmt.Errorf("install: %s is not on PATH, and only root can install it: apt-get install %s", program, program)
	}
	apt := func(args ...string) error {
		// A lock of another apt-get, and a mirror that does not answer at once, pass.
		options := []string{"-q", "-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=3"}
		return Run(ctx, "/", "env", append(append([]string{"DEBIAN_FRONTEND=noninteractive", "apt-get"}, options...), args...)...)
	}
	if err := apt("update"); err != nil {
		return "", fmt.Errorf("install %s: %w", program, err)
	}
	if err := apt(append([]string{"install", "-y", "--no-install-recommends"}, packages...)...); err != nil {
		return "", fmt.Errorf("install %s: %w", program, err)
	}
	return exec.LookPath(program)
}
