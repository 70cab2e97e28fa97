package main

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
)

// goVersionFile contains the version of Go for release builds. The CI workflow and the Dockerfile
// use the same version, because only that version builds the same bytes from a commit.
//
//go:embed go-version
var goVersionFile string

// releaseGo returns the version in goVersionFile in Go's notation, such as go1.26.8.
func releaseGo() string { return "go" + strings.TrimSpace(goVersionFile) }

// requireReleaseGo returns an error unless the go command, run in the given module's directory, has
// the version that releaseGo returns.
func requireReleaseGo(ctx context.Context, module string) error {
	installed, err := output(ctx, module, nil, "go", "env", "GOVERSION")
	if err != nil {
		return err
	}
	if got := strings.TrimSpace(installed); got != releaseGo() {
		return fmt.Errorf("this is %s, and a release is built with %s: install that, or change proof/release/go-version and the Dockerfile", got, releaseGo())
	}
	return nil
}
