//go:build linux

package peers

import (
	"context"
	"embed"
	"os/exec"
	"path/filepath"

	"github.com/leasehold-go/leasehold/proof/interop/install"
)

// Peers for Python.
var (
	PythonDynamoDBLock = Peer{
		Name: "python-dynamodb-lock", Version: "0.9.1", Layout: "python-dynamodb-lock",
		Heartbeats: true,
		command:    pythonCommand("python-dynamodb-lock"),
	}
	DynamoDLM = Peer{
		Name: "dynamo-dlm", Version: "2.1.0", Layout: "dynamo-dlm",
		command: pythonCommand("dynamo-dlm"),
	}
	DyndbMutex = Peer{
		Name: "dyndbmutex", Version: "0.4.0", Layout: "dyndb-mutex",
		command: pythonCommand("dyndbmutex"),
	}
)

var (
	//go:embed python/requirements.txt
	pythonRequirements embed.FS
	//go:embed python/*.py
	pythonSources embed.FS
)

// pythonCommand returns a function for the field Peer.command of a Python peer. The function
// returns the command that starts the peer's driver. The three Python peers share one virtual
// environment.
func pythonCommand(peer string) func(context.Context) (*exec.Cmd, error) {
	return func(ctx context.Context) (*exec.Cmd, error) {
		env, err := driver(ctx, "peers-python", pythonRequirements, func(ctx context.Context, dir string) error {
			if err := install.Require("python3", "install Python 3.10 or newer with venv (Debian: apt-get install python3-venv)"); err != nil {
				return err
			}
			if err := install.Run(ctx, dir, "python3", "-m", "venv", "venv"); err != nil {
				return err
			}
			return install.Run(ctx, dir, filepath.Join(dir, "venv", "bin", "python"), "-m", "pip",
				"install", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes", "--only-binary", ":all:", "-r", "requirements.txt")
		})
		if err != nil {
			return nil, err
		}
		sources, err := driver(ctx, "peers-python-driver", pythonSources, func(context.Context, string) error { return nil })
		if err != nil {
			return nil, err
		}
		return exec.Command(filepath.Join(env, "venv", "bin", "python"), "-B", filepath.Join(sources, "driver.py"), peer), nil
	}
}
