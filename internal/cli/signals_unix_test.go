//go:build unix

package cli

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/leasehold-go/leasehold/internal/cli/process"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestHelpListsForwardedSignals(t *testing.T) {
	text, _ := helpText("environment")
	help := strings.Join(strings.Fields(text), " ")
	_, listed, _ := strings.Cut(help, "CMD runs in its own process group. ")
	listed, rest, ok := strings.Cut(listed, " are passed on to it. PIPE is not: ")
	if !ok || rest == "" {
		t.Fatal("the help does not say which signals are passed on")
	}
	var named, passed []string
	for name := range strings.SplitSeq(strings.ReplaceAll(listed, " and ", ", "), ", ") {
		named = append(named, "SIG"+name)
	}
	for _, sig := range process.Caught {
		if sig != unix.SIGPIPE {
			passed = append(passed, process.SignalName(sig.(syscall.Signal)))
		}
	}
	slices.Sort(named)
	slices.Sort(passed)
	lab.Want(t, "signals in the help", named, passed)
}
