package boottime

import (
	"syscall"
	"time"
	"unsafe"
)

// Now reads CLOCK_BOOTTIME, which is like the monotonic clock but also runs while the
// machine is suspended (clock_gettime(2)). All processes of the machine read the same
// clock.
func Now() time.Duration {
	const clockBoottime = 7 // value from <linux/time.h>
	var ts syscall.Timespec
	// The call cannot fail: the clock has existed since Linux 2.6.39, and Go requires 3.2.
	// The call does not block, so the scheduler need not know of it.
	_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano())
}
