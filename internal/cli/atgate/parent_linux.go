package atgate

import "syscall"

// dieWithParent makes the kernel kill this process when its parent dies. The setting
// survives an execve(2) by the calling thread.
func dieWithParent() {
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0) // prctl fails here only for an invalid signal
}
