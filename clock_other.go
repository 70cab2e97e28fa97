//go:build !linux

package leasehold

import "time"

// sinceBoot is the wall clock where no clock is known that cannot be set and
// goes on while the machine is suspended.
func sinceBoot() time.Duration { return time.Duration(time.Now().UnixNano()) }

// clockID is unknown: observations of other processes go by the wall clock.
func clockID() string { return "" }
