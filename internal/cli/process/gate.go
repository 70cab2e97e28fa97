package process

import (
	"os"

	"github.com/leasehold-go/leasehold/internal/cli/failure"
)

// gate keeps CMD from running until the watchdog knows its process group, so
// that no process that CMD starts survives if leasehold is killed.
//
// The started process is leasehold itself (package atgate). It waits at the gate and then becomes
// CMD (execve(2)): the same process in the same group. The watchdog need not confirm that it
// knows the group. The order is in its pipe before the gate opens, and the watchdog reads it
// before EOF. EOF means that the supervisor has died. If the supervisor dies earlier, the gate
// never opens.
//
// A group that another process creates first, for CMD to join, would need no gate. But CMD would
// not lead that group, and could easily leave it: a shell with job control creates its own group,
// and setsid(2) a session.
type gate struct {
	conn   *os.File      // the supervisor's end; nil if there is no gate
	passed chan struct{} // closed when CMD runs, or never will run
	err    error         // why CMD could not be executed; set before passed is closed
}

// noGate returns a gate that CMD has already passed.
func noGate() *gate {
	g := &gate{passed: make(chan struct{})}
	close(g.passed)
	return g
}

// open lets CMD run.
func (g *gate) open() {
	if g.conn != nil {
		_, _ = g.conn.Write([]byte{1}) // fails if the process has ended, which reap reports
	}
}

// execError returns why CMD could not be executed; nil if it was. code is the exit code of the
// process: only failure.CodeNotRun can mean that it did not become CMD.
func (g *gate) execError(code int) error {
	if code != failure.CodeNotRun {
		return nil
	}
	<-g.passed
	return g.err
}
