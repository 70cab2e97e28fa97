//go:build !linux

package boottime

import "time"

// Now returns the reading of the wall clock. Like CLOCK_BOOTTIME on Linux, this clock runs while
// the machine is suspended, and is the same for all processes. But it jumps when it is set.
func Now() time.Duration { return time.Duration(time.Now().UnixNano()) }
