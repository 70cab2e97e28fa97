//go:build !linux

package machine

import "time"

// sinceBoot is the wall clock: this system has no known clock that cannot be set and
// runs on while the machine is suspended.
func sinceBoot() time.Duration { return time.Duration(time.Now().UnixNano()) }
