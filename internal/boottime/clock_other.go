//go:build !linux

package boottime

import "time"

// Now is the wall clock: this system has no known clock that cannot be set, runs on while
// the machine is suspended, and is the same for all processes. Its risk is that somebody
// sets it.
func Now() time.Duration { return time.Duration(time.Now().UnixNano()) }
