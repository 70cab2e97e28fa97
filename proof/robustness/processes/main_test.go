//go:build linux

package processes

import (
	"flag"
	"os"
	"testing"

	"github.com/rs/zerolog"
)

func TestMain(m *testing.M) {
	BeWorker()
	BeCommand()
	BeDisk()
	// These tests mostly wait for leases to expire, so more of them can run at once than the
	// machine has cores.
	flag.Parse()
	zerolog.SetGlobalLevel(zerolog.Disabled) // silences log messages that the proxy library writes to the global logger
	if err := flag.Set("test.parallel", "5"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// verify reports all rules that the journal violates, and returns the figures of the
// journal.
func verify(t *testing.T, events []Event) figures {
	t.Helper()
	found := Verify(events, bound)
	for _, v := range found[:min(len(found), 20)] {
		t.Error(v)
	}
	if len(found) > 20 {
		t.Errorf("and %d more", len(found)-20)
	}
	f := figuresOf(events)
	t.Logf("%v; %d violations", f, len(found))
	return f
}
