//go:build linux

package processes

import (
	"errors"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Three hundred processes of the leasehold command, with the flag for not waiting, use one
// file at the same time. The kernel queues them for the file lock. So each process must get
// a definite answer, even on a busy machine.
func TestConcurrentProcessesDoNotFailOnLockedStoreFile(t *testing.T) {
	const crowd = 300
	binary, file := buildCommand(t), filepath.Join(t.TempDir(), "locks.db")
	var mu sync.Mutex // guards the map codes
	codes := map[int]int{}
	var running sync.WaitGroup
	for range crowd {
		running.Go(func() {
			cmd := exec.Command(binary, "run", "--file", file, "-n", "k", "--", "true")
			said, err := cmd.CombinedOutput()
			code := 0
			if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
				code = failed.ExitCode()
			} else if err != nil {
				t.Error(err)
			}
			if code != 0 && code != 75 {
				t.Errorf("exit code %d: %s", code, said)
			}
			mu.Lock()
			defer mu.Unlock()
			codes[code]++
		})
	}
	running.Wait()
	t.Logf("exit codes: %v", codes)
	if codes[0] == 0 {
		t.Error("nobody was granted the key")
	}
}
