//go:build linux

package processes

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// Environment variables for the number of kills, the number of pauses, and the seed.
const (
	killsVariable  = "LEASEHOLD_KILLS"
	pausesVariable = "LEASEHOLD_PAUSES"
	seedVariable   = "LEASEHOLD_SEED"
)

// bound is how long after the last fault, plus one lease, each key may take to be granted
// again. It is long enough for a busy machine.
const bound = 20 * time.Second

// count returns the number of kills or pauses: the variable's value, or 300 if the variable
// is unset.
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

// seed returns the seed that decides which processes meet faults, and what workers do. Two
// runs with the same seed are similar but not equal, because their times depend on the
// machine.
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
