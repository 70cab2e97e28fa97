//go:build linux

// Command record runs other lock libraries against a new server. The libraries store items in
// their tables. The command writes these items to internal/records/testdata/golden, one file
// for each case.
// Run it in proof/interop:
//
//	go run ./cmd/record
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/leasehold-go/leasehold/proof/interop/engines"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := do(ctx, filepath.Join("..", "..", "internal", "records", "testdata", "golden"))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func do(ctx context.Context, into string) (err error) {
	if _, err := os.Stat(filepath.Join("..", "..", "layout")); err != nil {
		return fmt.Errorf("record: run it in interop: %w", err)
	}
	server, err := engines.Dynoxide.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	for i, c := range cases() {
		c.settings.Table = fmt.Sprintf("case%d", i)
		golden, err := c.record(ctx, server)
		if err != nil {
			return fmt.Errorf("record: %s/%s: %w", c.peer.Name, c.name, err)
		}
		if err := golden.write(filepath.Join(into, c.peer.Layout), c.name+".json"); err != nil {
			return err
		}
		fmt.Println(c.peer.Name, c.name)
	}
	return nil
}

// write writes g to the named file in dir, as indented JSON.
func (g golden) write(dir, name string) error {
	b, err := json.MarshalIndent(g, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name), append(b, '\n'), 0o600)
}
