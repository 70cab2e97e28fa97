// Package durations adds, subtracts and multiplies durations without overflow. A result that does
// not fit becomes the longest or the shortest (most negative) duration. A user may choose a lease
// of any length. With plain arithmetic, the end of a very long lease would overflow into the past.
// Leasehold uses this package to add a duration to the reading of a clock, and to multiply a
// duration that a user has chosen.
//
// Package durations imports only the standard library, so that the watchdog process, which must
// start fast, can use it.
package durations

import (
	"math"
	"time"
)

const (
	longest  = time.Duration(math.MaxInt64)
	shortest = time.Duration(math.MinInt64)
)

// Sum returns a + b, or the longest or shortest duration if the result does not fit.
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

// Less returns a - b, or the longest or shortest duration if the result does not fit.
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

// Times returns n * d, or the longest or shortest duration if the result does not fit.
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

// Scale returns d times f, rounded towards zero, or the longest or shortest duration if the
// result does not fit.
func Scale(d time.Duration, f float64) time.Duration {
	scaled := float64(d) * f
	switch {
	case d == 0:
		return 0
	case scaled >= math.MaxInt64: // the float64 closest to MaxInt64 is MaxInt64 + 1
		return longest
	case scaled <= math.MinInt64:
		return shortest
	}
	return time.Duration(scaled)
}
