package cli

import (
	"fmt"
	"os"
	"os/exec"
)

// StandAtGate starts CMD as run does, but hangs before it tells a watchdog of CMD's
// group: it prints the order, and waits to be killed.
func StandAtGate() {
	self, err := thisProgram()
	if err != nil {
		panic(err)
	}
	s := &supervision{
		watchdog: &watchdogHandle{orders: stuck{}},
		cmd:      &exec.Cmd{Path: os.Args[1], Args: os.Args[1:], Env: os.Environ(), Stderr: os.Stderr},
	}
	_, err = s.start(self)
	panic(fmt.Sprint("it went on: ", err))
}

type stuck struct{}

func (stuck) Write(order []byte) (int, error) {
	_, _ = os.Stdout.Write(order)
	select {}
}

func (stuck) Close() error { return nil }
