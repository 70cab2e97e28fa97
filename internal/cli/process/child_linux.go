package process

import (
	"os"
	"os/signal"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ownGroup puts CMD into its own process group, and makes the kernel kill CMD
// when the thread that started it ends (prctl(2), PR_SET_PDEATHSIG).
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
}

// await returns when CMD has been stopped or has ended. It does not reap CMD (waitid(2),
// WNOWAIT). So CMD keeps its process id until Reap, and no signal to CMD's group can reach
// other processes.
func (c *Child) await() (stopped bool, sig syscall.Signal) {
	const cldStopped = 5 // siginfo's si_code, <asm-generic/siginfo.h>
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, c.cmd.Process.Pid, &info, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT, nil)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil || info.Code != cldStopped:
			return false, 0
		}
		// Consume the stop, so that the next call does not report it again. The end of CMD
		// is not consumed here, but by Reap.
		_ = unix.Waitid(unix.P_PID, c.cmd.Process.Pid, nil, unix.WSTOPPED|unix.WNOHANG, nil)
		return true, stopSignal(&info)
	}
}

// hasEnded reports whether CMD has ended. It may return true before Exited is closed. It
// must not be called after CMD was reaped.
func (c *Child) hasEnded() bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, c.cmd.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
	return err == nil && info.Signo != 0
}

// stopSignal returns si_status, which x/sys does not name. It follows si_pid and si_uid
// in the union, which is aligned to a word.
func stopSignal(info *unix.Siginfo) syscall.Signal {
	const header, pidAndUID = 3 * 4, 2 * 4
	word := unsafe.Sizeof(uintptr(0))
	union := (uintptr(header) + word - 1) / word * word
	return syscall.Signal(*(*int32)(unsafe.Add(unsafe.Pointer(info), union+pidAndUID))) //nolint:gosec // within the struct, which x/sys pads to the kernel's size
}

// ThisProgram returns a path that works even if a newer version has replaced the
// program's file.
func ThisProgram() (string, error) { return "/proc/self/exe", nil }

// adoptOrphans makes this process the parent of descendants whose own parent has ended.
// deaths then receives a signal when a child process ends.
func adoptOrphans(deaths chan<- os.Signal) {
	signal.Notify(deaths, unix.SIGCHLD)
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // fails on Linux before 3.4, although Go needs only 3.2; leasehold then sees only CMD's group
}

// reapOrphan reaps an ended child that this process has not started. Children that it has
// started are reaped by the code that waits for them.
func reapOrphan(pid int) { _, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) }
