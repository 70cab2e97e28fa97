package watchdog

import (
	"syscall"
	"time"
	"unsafe"
)

// Clock is the time since boot. It is the same for all processes of the
// machine and advances while the machine is suspended (clock_gettime(2)).
func Clock() time.Duration {
	const clockBoottime = 7 // <linux/time.h>; exists since Linux 2.6.39, Go asks for 3.2
	var ts syscall.Timespec
	_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano())
}
