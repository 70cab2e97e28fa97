//go:build linux

package processes

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// Names of environment variables: for the number of kills, the number of suspensions, and
// the random seed.
const (
	killsVariable  = "LEASEHOLD_KILLS"
	pausesVariable = "LEASEHOLD_PAUSES"
	seedVariable   = "LEASEHOLD_SEED"
)

// bound is a margin for busy machines: after the last fault, each key must be granted again
// within the longest lease plus bound.
const bound = 20 * time.Second

// count returns the number of kills or suspensions for a test: the value of the environment
// variable, or 300 if it is not set.
func count(t testing.TB, variable string) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return 300
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%s: use a number from 1", variable, text)
	}
	return n
}

// seed returns the random seed that decides which processes the test kills or suspends, and
// what the workers do. Two runs with the same seed are similar but not equal, because their
// times depend on the machine.
func seed(t testing.TB) uint64 {
	t.Helper()
	s := uint64(time.Now().UnixNano())
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if s, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s=%s: %v", seedVariable, text, err)
		}
	}
	t.Logf("%s=%d", seedVariable, s)
	return s
}
