//go:build linux

package processes

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// These environment variables set the number of kills and of pauses, and the seed.
const (
	killsVariable  = "LEASEHOLD_KILLS"
	pausesVariable = "LEASEHOLD_PAUSES"
	seedVariable   = "LEASEHOLD_SEED"
)

// bound is the time within which each key must be granted, counted from one lease after the
// last fault. It is long enough for a busy machine.
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

// seed decides which processes meet faults, and what workers do. The times depend on the
// machine, so the same seed gives a similar run, but not the same one.
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
