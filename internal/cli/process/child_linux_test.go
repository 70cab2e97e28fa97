package process

import (
	"os/exec"
	"runtime"
	"testing"
	"time"
)

func TestChildHasEndedBeforeExitedIsClosed(t *testing.T) {
	ended, runs := exec.Command("true"), exec.Command("sleep", "60")
	for _, cmd := range []*exec.Cmd{ended, runs} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	defer func() {
		_ = runs.Process.Kill()
		_, _ = ended.Wait(), runs.Wait()
	}()
	c := &Child{cmd: ended, Exited: make(chan struct{})}
	for deadline := time.Now().Add(time.Minute); !c.hasEnded() && time.Now().Before(deadline); {
		runtime.Gosched()
	}
	if !c.hasEnded() {
		t.Error("the end of CMD is not seen")
	}
	if (&Child{cmd: runs}).hasEnded() {
		t.Error("a CMD that runs has ended")
	}
}
