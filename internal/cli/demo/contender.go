package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"syscall"

	"github.com/leasehold-go/leasehold/internal/cli/process"
)

// contender is a process, as the demo sees it.
type contender struct {
	name  string
	child *process.Child
	in    io.WriteCloser
}

// start starts a process. Its events are sent to d.events until ctx ends.
func (d *Demo) start(ctx context.Context, name, key string) (*contender, error) {
	cmd := d.Process
	cmd.Args = append([]string{"leasehold", Command, name, key, "--lease", d.Lease.String()}, cmd.Args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	child, err := process.Start(&cmd)
	if err != nil {
		return nil, err
	}
	go func() {
		for lines := json.NewDecoder(out); ; {
			var e Event
			if lines.Decode(&e) != nil {
				return
			}
			select {
			case d.events <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	return &contender{name, child, in}, nil
}

func (c *contender) tell(order string) { _, _ = fmt.Fprintln(c.in, order) }

// end kills the process, if it still runs.
func (c *contender) end() {
	c.child.Signal(syscall.SIGKILL)
	for {
		select {
		case <-c.child.Stops:
		case <-c.child.Exited:
			c.child.Reap()
			return
		}
	}
}
