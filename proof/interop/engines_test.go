//go:build linux

// Package interop tests leasehold against third-party programs: servers of the DynamoDB
// API, and the clients that can share a lock table with leasehold.
package interop

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold/internal/conformance"
	"github.com/leasehold-go/leasehold/internal/layouttest"
	"github.com/leasehold-go/leasehold/proof/interop/engines"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRealEnginesPassConformanceTests(t *testing.T) {
	for _, e := range engines.All() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			conformance.Run(t, conformance.Engine{Name: e.Name, Client: engines.Run(t, e).Client()})
		})
	}
}

// TestLayoutsWorkOnRealEngines runs the layouts with real leases, as short as
// they can be, on servers that this project did not write.
func TestLayoutsWorkOnRealEngines(t *testing.T) {
	for _, e := range engines.All() {
		t.Run(e.Name, func(t *testing.T) {
			server := engines.Run(t, e)
			on := layouttest.Engine{Run: func(t *testing.T, check func(*testing.T, layouttest.Connect)) {
				check(t, server.Client)
			}}
			t.Run("layouts", func(t *testing.T) { // this subtest ends after all layouts, so that the server does not stop earlier
				for _, s := range layouttest.Brief() {
					t.Run(s.Name, func(t *testing.T) {
						t.Parallel()
						layouttest.Exercise(t, on, s)
					})
				}
			})
		})
	}
}

// TestCommandWorksOnRealEngines runs the command's own tests on tables of real servers. It
// runs only the tests that need nothing but a table.
func TestCommandWorksOnRealEngines(t *testing.T) {
	for _, e := range engines.All() {
		t.Run(e.Name, func(t *testing.T) {
			server := engines.Run(t, e)
			cmd := exec.Command("go", "test", "-count=1", "-timeout", "5m", "-run", "OnAnyTable$", "./internal/cli")
			cmd.Dir = "../.."
			cmd.Env = append(os.Environ(), "LEASEHOLD_TEST_ENDPOINT="+server.Endpoint)
			cmd.WaitDelay = 10 * time.Second
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			t.Logf("%s", out)
		})
	}
}
