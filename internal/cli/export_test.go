package cli

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
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

// CheckArgs finds a command line wrong that names a command or flag that is not
// there. It runs nothing, and does not ask whether the line is complete.
func CheckArgs(args []string) error {
	root := Command()
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	cmd.InitDefaultHelpFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if left := cmd.Flags().Args(); cmd == root && len(left) > 0 && left[0] != strings.ToUpper(left[0]) && left[0] != "…" {
		return fmt.Errorf("no command %q", left[0])
	}
	return nil
}
