//go:build unix

package cli

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/cli/atgate"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/watchdog"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// The command "leasehold run" starts two helper processes from its own executable: the gate
// process, which waits until CMD may start, and the watchdog. Both must start quickly. So they must
// not initialize the AWS SDK, which would take several times as long as their own work.
func TestHelperProcessesDoNotInitializeAWSSDK(t *testing.T) {
	self := lab.Must(os.Executable())(t)
	type variant struct {
		args       []string
		code, most int
	}
	lab.Variants(t, map[string]variant{
		"gate":     {atgate.Args(99, "/bin/true", []string{"true"}), failure.CodeNotRun, 30},
		"watchdog": {watchdog.Args(syscall.SIGTERM, time.Second, watchdog.Descent{}), 0, 80},
	}, func(t *testing.T, process variant) {
		cmd := &exec.Cmd{Path: self, Args: process.args, Env: append(os.Environ(), "GODEBUG=inittrace=1")}
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != process.code {
			t.Fatalf("wrong exit code: %v\n%s", err, out)
		}
		if n := strings.Count(string(out), "\ninit "); n == 0 || n > process.most {
			t.Errorf("%d packages are initialized:\n%s", n, out)
		}
		lab.WantNoPart(t, "the initialized packages", out, "\ninit github.com/aws/aws-sdk-go-v2/service/")
	})
}
