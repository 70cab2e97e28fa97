//go:build linux

// Package sharing tests leasehold and other lock libraries on one shared lock table. It uses real
// servers, and real processes that it kills and pauses. make interop prints the results as a table.
package sharing

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// Four tests run at the same time, even on a machine with two cores, because the tests mostly
	// wait for leases to expire.
	flag.Parse()
	if err := flag.Set("test.parallel", "4"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	goleak.VerifyTestMain(m)
}
