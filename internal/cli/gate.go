package cli

import (
	"os"
	"strconv"

	"github.com/spf13/cobra"
)

// gate keeps CMD from running until the watchdog has been told of its process
// group, so that nothing CMD starts outlives a leasehold that is killed.
//
// What is started as CMD is leasehold itself. It waits at the gate and then
// becomes CMD (execve(2)), the same process in the same group. The watchdog
// need not confirm that it knows the group: the order is in its pipe by the
// time that the gate opens, and it reads it before the end of the pipe, which
// is how it learns of the supervisor's death. A supervisor that dies before
// that closes the gate for good.
//
// A group that somebody else makes beforehand, and CMD joins, would need no
// gate. But CMD would not lead it, and who does not lead its group leaves it
// easily: a shell with job control makes one of its own, setsid(2) a session.
type gate struct {
	conn   *os.File      // the supervisor's end; nil if there is nothing to wait for
	passed chan struct{} // closed when CMD runs, or never will
	err    error         // why CMD could not be executed; set before passed is closed
}

// openGate is where there is nothing to wait for.
func openGate() *gate {
	g := &gate{passed: make(chan struct{})}
	close(g.passed)
	return g
}

// open lets CMD run.
func (g *gate) open() {
	if g.conn != nil {
		_, _ = g.conn.Write([]byte{1}) // who has ended meanwhile is not waiting
	}
}

// refusal returns why CMD could not be executed, if the exit code is that of
// one who has not become CMD. No other waits for the answer.
func (g *gate) refusal(code int) error {
	if code != codeNotRun {
		return nil
	}
	<-g.passed
	return g.err
}

// newGateCommand is the command that waits and becomes CMD.
func (a *app) newGateCommand() *cobra.Command {
	return &cobra.Command{
		Use: "gate -- FD PATH ARG0 [ARG...]", Hidden: true, Args: cobra.MinimumNArgs(3),
		RunE: func(_ *cobra.Command, args []string) error {
			fd, err := strconv.Atoi(args[0])
			if err != nil {
				return usagef("gate: file descriptor: %v", err)
			}
			becomeWhenOpened(fd, args[1], args[2:], a.Environ)
			return exit(codeNotRun, nil)
		},
	}
}
