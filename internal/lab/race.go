//go:build race

package lab

// Race reports whether the race detector is on. With the detector, tests take much longer,
// and the scheduler picks goroutines at random.
const Race = true
