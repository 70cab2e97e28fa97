//go:build linux

// Package interop tests leasehold with programs of other projects: with servers of the
// DynamoDB API, and with lock libraries that can share a lock table with leasehold.
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

func TestThirdPartyDynamoDBServersPassConformanceTests(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		t.Parallel()
		conformance.Run(t, conformance.Engine{Name: e.Name, Client: engines.Run(t, e).Client()})
	})
}

// TestLayoutsPassTestsOnThirdPartyDynamoDBServers tests every layout on third-party DynamoDB
// servers. Its leases expire in real time, so they are as short as possible.
func TestLayoutsPassTestsOnThirdPartyDynamoDBServers(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		server := engines.Run(t, e)
		on := layouttest.Engine{Run: func(t *testing.T, check func(*testing.T, layouttest.Connect)) {
			check(t, server.Client)
		}}
		t.Run("layouts", func(t *testing.T) { // this subtest ends only after the parallel subtests in it, so the server does not stop earlier
			for _, s := range layouttest.Brief() {
				t.Run(s.Name, func(t *testing.T) {
					t.Parallel()
					layouttest.Exercise(t, on, s)
				})
			}
		})
	})
}

// TestCommandPassesTestsOnThirdPartyDynamoDBServers runs the tests of the leasehold command on
// third-party DynamoDB servers. It runs only the tests that work on any backend.
func TestCommandPassesTestsOnThirdPartyDynamoDBServers(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		server := engines.Run(t, e)
		cmd := exec.Command("go", "test", "-count=1", "-timeout", "5m", "-run", "OnAnyBackend$", "./internal/cli")
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
