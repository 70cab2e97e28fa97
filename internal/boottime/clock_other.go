//go:build !linux

package boottime

import "time"

// Now returns the reading of the wall clock. On systems other than Linux, package boottime
// knows no clock that cannot be set, runs while the machine is suspended, and is the same
// for all processes. The wall clock has the last two properties, but a user may set it.
func Now() time.Duration { return time.Duration(time.Now().UnixNano()) }
