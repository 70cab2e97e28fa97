package boottime

import (
	"syscall"
	"time"
	"unsafe"
)

// Now reads CLOCK_BOOTTIME: like the monotonic clock, but it goes on while the machine is
// suspended (clock_gettime(2)). It is the same for all processes of the machine.
func Now() time.Duration {
	const clockBoottime = 7 // <linux/time.h>
	var ts syscall.Timespec
	// The call cannot fail: the clock exists since Linux 2.6.39, Go asks for 3.2. Nor can it
	// block: the scheduler need not be told of it.
	_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano())
}
