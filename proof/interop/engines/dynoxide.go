//go:build linux

package engines

import (
	"context"
	_ "embed"
	"path/filepath"

	"github.com/leasehold-go/leasehold/proof/interop/install"
)

// Dynoxide is a small DynamoDB server in one static binary, which this package installs
// from npm.
var Dynoxide = Engine{Name: "dynoxide", Version: "1.2.1", install: installDynoxide, start: startDynoxide}

// package-lock.json contains the checksum of the npm package, which npm verifies.
var (
	//go:embed npm/package.json
	dynoxidePackage []byte
	//go:embed npm/package-lock.json
	dynoxideLock []byte
)

func installDynoxide(ctx context.Context, dir string) error {
	if err := install.Require("npm", "install Node 20 or newer (Debian: apt-get install npm)"); err != nil {
		return err
	}
	if err := install.Files(dir, map[string][]byte{"package.json": dynoxidePackage, "package-lock.json": dynoxideLock}); err != nil {
		return err
	}
	return install.Run(ctx, dir, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
}

func startDynoxide(dir, tables string) (*Server, error) {
	args := []string{"serve", "--host", "127.0.0.1", "--port", "0"}
	if tables != "" {
		args = append(args, "--db-path", filepath.Join(tables, "dynoxide.db"))
	}
	// With port 0, dynoxide chooses a free port but prints 0. So Server.waitUntilReady looks the
	// port up in the kernel's list of sockets.
	s, err := launch(command{
		path: filepath.Join(dir, "node_modules", "@dynoxide", "linux-x64", "dynoxide"),
		args: args,
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}
