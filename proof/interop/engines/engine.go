//go:build linux

package engines

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold/proof/interop/install"
)

// Engine is a server that this package can install and start.
type Engine struct {
	Name    string // name of the engine in conformance cases and error messages
	Version string // version that this package installs

	// install puts the engine into the empty folder dir.
	install func(ctx context.Context, dir string) error
	// start starts the engine that install has put into dir. The engine's tables are in the folder
	// tables, or in memory if tables is empty.
	start func(dir, tables string) (*Server, error)

	tables string
}

// In returns a copy of the engine. The copy keeps its tables in the folder dir. A server that is
// started later with the same folder finds the tables there, even if the earlier server was killed.
func (e Engine) In(dir string) Engine {
	e.tables = dir
	return e
}

// All returns both engines, the faster one first.
func All() []Engine { return []Engine{Dynoxide, DynamoDBLocal} }

// Each runs a test once for each engine, as a subtest with the name of the engine.
func Each(t *testing.T, test func(t *testing.T, e Engine)) {
	t.Helper()
	for _, e := range All() {
		t.Run(e.Name, func(t *testing.T) { test(t, e) })
	}
}

// Find returns the engine with the given name.
func Find(name string) (Engine, error) {
	var names []string
	for _, e := range All() {
		if e.Name == name {
			return e, nil
		}
		names = append(names, e.Name)
	}
	return Engine{}, fmt.Errorf("engines: no engine %q: there are %s", name, strings.Join(names, " and "))
}

// Install installs the engine, unless it is already installed, and returns its folder.
// Processes that install at the same time take turns.
func (e Engine) Install(ctx context.Context) (string, error) {
	return install.Once(ctx, e.Name+"-"+e.Version, e.install)
}

// Start starts the engine, and installs it first if necessary. The tables are in memory, or in the
// folder given to [Engine.In]. ctx limits only the installation and the wait until the server
// answers. The server ends when [Server.Stop] is called or this process ends.
func (e Engine) Start(ctx context.Context) (*Server, error) {
	dir, err := e.Install(ctx)
	if err != nil {
		return nil, err
	}
	server, err := e.start(dir, e.tables)
	if err != nil {
		return nil, fmt.Errorf("engines: start %s: %w", e.Name, err)
	}
	server.Name = e.Name
	if err := server.waitUntilReady(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("engines: %s did not answer: %w", e.Name, err), server.Stop())
	}
	return server, nil
}
