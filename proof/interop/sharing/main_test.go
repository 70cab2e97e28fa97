//go:build linux

// Package sharing plays leasehold and the lock libraries of others on one table:
// real processes, real servers, killed and paused. make interop shows it as a
// table.
package sharing

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// A match mostly waits for leases to end, so twice as many run at once as go test would run on
	// two cores.
	flag.Parse()
	if err := flag.Set("test.parallel", "4"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	goleak.VerifyTestMain(m)
}
