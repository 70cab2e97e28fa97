package probes

import "time"

// standing is what is told of one moment.
type standing struct {
	leads bool // this process is trusted to lead
	live  bool // CMD does not run, or runs in a term that is renewed in time
}

// standingAt is how a process stands at now. trustedUntil is the end of its term's trust,
// zero without a term. Renewals are overdue when less than overdue is left of it.
func standingAt(now, trustedUntil time.Time, overdue time.Duration, running bool) standing {
	left := trustedUntil.Sub(now) // of no term: below zero
	return standing{leads: left > 0, live: !running || left >= overdue}
}
