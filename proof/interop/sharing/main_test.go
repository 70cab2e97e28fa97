//go:build linux

// Package sharing tests leasehold and other lock libraries on one shared lock table. It
// uses real servers, and real processes that it kills and pauses. make interop prints the
// results as a table.
package sharing

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// These tests mostly wait for leases to expire. So four of them run at the same time, twice
	// as many as go test would run on two cores.
	flag.Parse()
	if err := flag.Set("test.parallel", "4"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	goleak.VerifyTestMain(m)
}
