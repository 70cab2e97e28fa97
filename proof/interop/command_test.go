//go:build linux

package interop

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/proof/interop/engines"
)

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
