package main

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
)

// goVersionFile is the version of Go that releases are built with. The workflow installs
// it, and the Dockerfile builds with it: the same commit gives the same bytes only with the
// same Go.
//
//go:embed go-version
var goVersionFile string

// releaseGo returns the version in goVersionFile in Go's notation, such as go1.26.8.
func releaseGo() string { return "go" + strings.TrimSpace(goVersionFile) }

// requireReleaseGo returns an error if module would be built with a version of Go other
// than releaseGo.
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
