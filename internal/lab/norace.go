//go:build !race

package lab

// Race reports whether the test runs under the race detector. With the detector, a test takes
// much longer, and the scheduler picks goroutines at random.
const Race = false
