//go:build unix

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestTableWhoWaitsForAReaderOfAFIFOSaysSoAndHoldsNothing(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	stderr, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	p := processOf(t, dir, env, "leasehold", "acquire", "k", "-f", fifo)
	p.cmd.Stderr = w
	p.start()
	w.Close()
	said := make([]byte, 1000)
	n, err := stderr.Read(said)
	if err != nil || !strings.Contains(string(said[:n]), "is a FIFO without a reader: waiting for one") {
		t.Errorf("said: %s, %v", said[:n], err)
	}
	p.signal(syscall.SIGINT)
	if err := p.cmd.Wait(); err == nil {
		t.Error("the signal has not ended the wait")
	}
	start(t, dir, env, "acquire", "-n", "k").ends(0)
}
