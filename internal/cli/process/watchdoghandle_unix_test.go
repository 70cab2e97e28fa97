//go:build unix

package process

import (
	"io"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/boottime"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/watchdog"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestCMDIsKilledIfTrustInLockEndsBeforeWatchdogIsReplaced(t *testing.T) {
	c := lab.Must(Start(&exec.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", "sleep 300 & wait"}}))(t)
	died := make(chan string)
	close(died)
	s := &supervision{
		lock: &several{until: time.Now()}, say: say.NewMessages(say.To(io.Discard, false)), until: boottime.Now(),
		self:     "/bin/true", // this program starts as the watchdog and exits immediately, so no watchdog stops CMD
		watchdog: &watchdogHandle{orders: textOf{io.Discard}, reports: died},
		descent:  watchdog.Descent{GroupOnly: true},
	}
	s.replaceWatchdog(c)
	<-c.Exited
	lab.Want(t, "exit code", c.Reap(), 128+int(syscall.SIGKILL))
	s.watchdog.end()
}
