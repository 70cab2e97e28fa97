// Package durations adds, subtracts and multiplies durations without overflow: a result
// that does not fit becomes the longest or shortest duration. A lease may have any length.
// With plain arithmetic, a lease close to the longest time.Duration would expire at once.
// All sums with the time of a clock, and all products of a length that a user chose, are
// computed here.
//
// The package imports only the standard library, so that the watchdog, which must start
// fast, can use it.
package durations

import (
	"math"
	"time"
)

const (
	longest  = time.Duration(math.MaxInt64)
	shortest = time.Duration(math.MinInt64)
)

// Sum returns a + b.
func Sum(a, b time.Duration) time.Duration {
	sum := a + b
	switch {
	case a > 0 && b > 0 && sum < 0:
		return longest
	case a < 0 && b < 0 && sum >= 0:
		return shortest
	}
	return sum
}

// Less returns a - b.
func Less(a, b time.Duration) time.Duration {
	switch diff := a - b; {
	case a >= 0 && b < 0 && diff < 0:
		return longest
	case a < 0 && b > 0 && diff >= 0:
		return shortest
	default:
		return diff
	}
}

// Times returns n * d.
func Times(d time.Duration, n int64) time.Duration {
	if d == 0 || n == 0 {
		return 0
	}
	product := d * time.Duration(n)
	switch {
	case product/time.Duration(n) == d && (product < 0) == ((d < 0) != (n < 0)):
		return product
	case (d < 0) == (n < 0):
		return longest
	}
	return shortest
}

// Scale returns d times f, which may be a fraction, rounded down towards zero.
func Scale(d time.Duration, f float64) time.Duration {
	scaled := float64(d) * f
	switch {
	case d == 0:
		return 0
	case scaled >= math.MaxInt64: // MaxInt64 as a float64 is rounded up by one
		return longest
	case scaled <= math.MinInt64:
		return shortest
	}
	return time.Duration(scaled)
}
