package process

import (
	"os"
	"os/signal"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ownGroup returns attributes that put CMD into its own process group. They also make the
// kernel kill CMD when the thread that started CMD ends (prctl(2), PR_SET_PDEATHSIG).
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
}

// await blocks until CMD is suspended or has ended, and returns the suspending signal or 0. It
// does not reap CMD (waitid(2), WNOWAIT), because the kernel could then reuse CMD's id, and
// signals to CMD's group could reach other processes.
func (c *Child) await() syscall.Signal {
	const cldStopped = 5 // CLD_STOPPED, a value of si_code, from <asm-generic/siginfo.h>
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, c.cmd.Process.Pid, &info, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT, nil)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil || info.Code != cldStopped:
			return 0
		}
		// Consume this report of waitid(2), so that the next call does not return it again.
		// The report that CMD has ended is consumed by Reap.
		_ = unix.Waitid(unix.P_PID, c.cmd.Process.Pid, nil, unix.WSTOPPED|unix.WNOHANG, nil)
		return stopSignal(&info)
	}
}

// hasEnded reports whether CMD has ended. It may return true before c.Exited is closed. It
// must not be called after Reap.
func (c *Child) hasEnded() bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, c.cmd.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
	return err == nil && info.Signo != 0
}

// stopSignal returns the field si_status of info. Package unix has no name for this field,
// which follows si_pid and si_uid in the word-aligned union of siginfo_t.
func stopSignal(info *unix.Siginfo) syscall.Signal {
	const header, pidAndUID = 3 * 4, 2 * 4
	word := unsafe.Sizeof(uintptr(0))
	union := (uintptr(header) + word - 1) / word * word
	return syscall.Signal(*(*int32)(unsafe.Add(unsafe.Pointer(info), union+pidAndUID))) //nolint:gosec // this is inside the struct, which package unix pads to the kernel's size
}

// ThisProgram returns a path that leads to the running executable even after its file was
// replaced by a newer version.
func ThisProgram() (string, error) { return "/proc/self/exe", nil }

// adoptOrphans makes this process the parent of every descendant whose own parent has
// ended. deaths then receives SIGCHLD when a child of this process ends.
func adoptOrphans(deaths chan<- os.Signal) {
	signal.Notify(deaths, unix.SIGCHLD)
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // fails before Linux 3.4; leasehold then sees only the processes of CMD's group
}

// reapOrphan reaps a child that has ended and that this process did not start. Other code
// reaps the children that this process did start.
func reapOrphan(pid int) { _, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) }
