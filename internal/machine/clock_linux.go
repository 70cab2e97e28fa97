package machine

import (
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// sinceBoot reads CLOCK_BOOTTIME: like the monotonic clock, but it goes on
// while the machine is suspended (clock_gettime(2)).
func sinceBoot() time.Duration {
	const clockBoottime = 7
	var ts syscall.Timespec
	// The call cannot fail: the clock exists since Linux 2.6.39, Go asks for 3.2.
	_, _, _ = syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano())
}

// ClockID names the clock that runs on in suspend; empty: it is not known.
var ClockID = sync.OnceValue(func() string {
	text := func(path string) string {
		b, _ := os.ReadFile(path) //nolint:gosec // below /proc; empty: cannot be told
		return string(b)
	}
	link := func(path string) string {
		to, _ := os.Readlink(path)
		return to
	}
	return nameClock(text, link)
})

// nameClock names the boot clock of this process: processes with the same name read
// the same clock. The name is the id of this boot of the machine (random(4)) and, in
// a container with a time namespace of its own, the clock's offset there
// (time_namespaces(7)). Empty: it is not known.
func nameClock(text, link func(path string) string) string {
	boot := strings.TrimSpace(text("/proc/sys/kernel/random/boot_id"))
	if boot == "" || link("/proc/self/ns/mnt") == "" {
		return "" // without a list of namespaces it is not known whether the clock has one
	}
	own := link("/proc/self/ns/time")
	if own == "" {
		return boot // this kernel has no time namespaces
	}
	if own != link("/proc/self/ns/time_for_children") {
		return "" // the offsets that can be read are the children's
	}
	for line := range strings.Lines(text("/proc/self/timens_offsets")) {
		// The name, or in Linux before 5.7 the number, of the clock; seconds;
		// nanoseconds.
		fields := strings.Fields(line)
		if len(fields) != 3 || !slices.Contains([]string{"boottime", "7"}, fields[0]) {
			continue
		}
		if fields[1] == "0" && fields[2] == "0" {
			return boot
		}
		return boot + "/" + fields[1] + "/" + fields[2]
	}
	return ""
}
