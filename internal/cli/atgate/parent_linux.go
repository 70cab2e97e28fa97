package atgate

import "syscall"

// dieWithParent makes the kernel kill this process when its parent dies. The setting stays
// in force when the calling thread executes another program.
func dieWithParent() {
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0) // this call fails only for an invalid signal
}
