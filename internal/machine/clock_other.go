//go:build !linux

package machine

import "time"

// sinceBoot is the wall clock where no clock is known that cannot be set and
// goes on while the machine is suspended.
func sinceBoot() time.Duration { return time.Duration(time.Now().UnixNano()) }

// ClockID is empty: observations of other processes go by the wall clock.
func ClockID() string { return "" }
