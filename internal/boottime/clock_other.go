//go:build !linux

package boottime

import "time"

// Now returns the reading of the wall clock. On systems other than Linux, package boottime has
// no other clock that runs while the machine is suspended and is the same for all processes.
// Unlike CLOCK_BOOTTIME on Linux, the wall clock jumps when it is set.
func Now() time.Duration { return time.Duration(time.Now().UnixNano()) }
