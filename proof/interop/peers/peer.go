//go:build linux

package peers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os/exec"

	"github.com/leasehold-go/leasehold/proof/interop/install"
)

// Peer is a lock library that this package can run.
type Peer struct {
	Name    string
	Version string // version that this package installs
	Layout  string // name, in package layout, of the layout that the peer uses

	// Heartbeats means that the library renews locks in the background if
	// Settings.Heartbeat is set.
	Heartbeats bool
	// ManualHeartbeat means that the library can renew a lock when the driver receives the
	// request "heartbeat".
	ManualHeartbeat bool

	// command returns the command that runs the peer's driver. It installs the peer first
	// if necessary.
	command func(ctx context.Context) (*exec.Cmd, error)
}

// All returns the peers that can be installed from a package registry.
func All() []Peer { return []Peer{AWSLabs, PythonDynamoDBLock, DynamoDLM, DyndbMutex} }

// Install installs the peer unless it is already installed.
func (p Peer) Install(ctx context.Context) error {
	_, err := p.command(ctx)
	return err
}

// driver writes the sources of a driver into a folder, calls the function build to build the
// driver there, and returns the folder. The folder's name contains a checksum of the sources,
// so changed sources get a new folder.
func driver(ctx context.Context, name string, sources fs.FS, build func(ctx context.Context, dir string) error) (string, error) {
	files := map[string][]byte{}
	sum := sha256.New()
	err := fs.WalkDir(sources, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(sources, path)
		files[entry.Name()] = content
		sum.Write([]byte(path))
		sum.Write(content)
		return err
	})
	if err != nil {
		return "", err
	}
	return install.Once(ctx, name+"-"+hex.EncodeToString(sum.Sum(nil)[:6]), func(ctx context.Context, dir string) error {
		if err := install.Files(dir, files); err != nil {
			return err
		}
		return build(ctx, dir)
	})
}
