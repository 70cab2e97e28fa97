//go:build linux

// Package sharing runs leasehold and other lock libraries on one table, with real
// processes, which it kills and pauses, and real servers. make interop shows the results as
// a table.
package sharing

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// A match mostly waits for leases to expire. So four matches run at once, twice as many
	// as go test would run on two cores.
	flag.Parse()
	if err := flag.Set("test.parallel", "4"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	goleak.VerifyTestMain(m)
}
