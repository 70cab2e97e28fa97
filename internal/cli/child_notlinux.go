//go:build unix && !linux

package cli

import (
	"os"
	"os/exec"
	"syscall"
	"time"
)

// bootClock is the wall clock, for want of one that all processes share,
// nobody can set and suspend does not stop.
func bootClock() time.Duration { return time.Duration(time.Now().UnixNano()) }

// dieWithUs has no counterpart here: the watchdog sees the supervisor end.
func dieWithUs(*syscall.SysProcAttr) {}

// awaitExit waits for CMD.
func awaitExit(cmd *exec.Cmd) { _ = cmd.Wait() }

func thisProgram() (string, error) { return os.Executable() }
