//go:build race

package lab

// Race says whether the race detector is on: it costs time, and has the
// scheduler pick goroutines at random.
const Race = true
