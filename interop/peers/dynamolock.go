//go:build linux

package peers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

// Dynamolock is cirello.io/dynamolock, which no registry that this project
// installs from serves. Whoever has it builds a driver (interop/README.md) and
// names the program in LEASEHOLD_DYNAMOLOCK_DRIVER.
var Dynamolock = Peer{
	Name: "dynamolock", Version: "v5", Layout: "dynamolock",
	Heartbeats: true,
	command: func(context.Context) (*exec.Cmd, error) {
		path := os.Getenv("LEASEHOLD_DYNAMOLOCK_DRIVER")
		if path == "" {
			return nil, fmt.Errorf("%w: dynamolock: set LEASEHOLD_DYNAMOLOCK_DRIVER to a driver that has it, see interop/README.md", ErrNotInstallable)
		}
		return exec.Command(path), nil
	},
}
