//go:build !linux

package boottime

import "time"

// Now returns the reading of the wall clock. On systems other than Linux, package boottime
// knows no better clock: the clock must run while the machine is suspended, and must be the
// same for all processes. But a user may set the wall clock.
func Now() time.Duration { return time.Duration(time.Now().UnixNano()) }
