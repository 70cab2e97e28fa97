//go:build race

package lab

// Race reports whether the race detector is on: it costs time, and makes the scheduler pick
// goroutines at random.
const Race = true
