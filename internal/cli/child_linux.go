package cli

import (
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// bootClock is the same for all processes of the machine, and goes on while it
// is suspended (clock_gettime(2)).
func bootClock() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) // the clock exists since Linux 2.6.39, Go asks for 3.2
	return time.Duration(ts.Nano())
}

// dieWithUs has the kernel kill CMD when the thread that started it ends
// (prctl(2), PR_SET_PDEATHSIG).
func dieWithUs(attr *syscall.SysProcAttr) { attr.Pdeathsig = unix.SIGKILL }

// awaitExit returns when CMD has ended, and leaves its process id in use until
// cmd.Wait, so that no signal to its group can reach another (waitid(2),
// WNOWAIT).
func awaitExit(cmd *exec.Cmd) {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return
		}
	}
}

// thisProgram is found even after its file was replaced by a newer version.
func thisProgram() (string, error) { return "/proc/self/exe", nil }
