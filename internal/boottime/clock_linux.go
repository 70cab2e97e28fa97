package boottime

import (
	"syscall"
	"time"
	"unsafe"
)

// Now returns the reading of CLOCK_BOOTTIME. This clock is like the monotonic clock, but
// also runs while the machine is suspended (clock_gettime(2)). All processes of a machine
// read the same clock.
func Now() time.Duration {
	const clockBoottime = 7 // value from <linux/time.h>
	var ts syscall.Timespec
	// The system call cannot fail: the clock has existed since Linux 2.6.39, and Go requires
	// Linux 3.2. The call does not block, so RawSyscall need not inform Go's scheduler.
	_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano())
}
