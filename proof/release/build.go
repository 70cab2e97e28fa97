package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// checkout is a commit and its commit time. All files of a release get the commit time as
// their modification time.
type checkout struct {
	commit string
	time   time.Time
}

// checkedOut returns the commit that is checked out in the given module's directory.
func checkedOut(ctx context.Context, module string) (checkout, error) {
	head, err := output(ctx, module, nil, "git", "log", "-1", "--format=%H %ct")
	if err != nil {
		return checkout{}, err
	}
	hash, seconds, _ := strings.Cut(strings.TrimSpace(head), " ")
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return checkout{}, fmt.Errorf("the time of commit %s: %w", hash, err)
	}
	return checkout{commit: hash, time: time.Unix(at, 0).UTC()}, nil
}

// requireCommitted returns an error if the given module's directory has uncommitted changes: the
// manual of a release would contain them, because it comes from the code of this program.
func requireCommitted(ctx context.Context, module string) error {
	changes, err := output(ctx, module, nil, "git", "status", "--porcelain")
	if err == nil && changes != "" {
		err = fmt.Errorf("uncommitted changes, which the manual would contain: commit or remove them:\n%s", changes)
	}
	return err
}

// clone clones the git repository of the given module into the new directory "to", and checks out
// the commit of c there.
func clone(ctx context.Context, module string, c checkout, to string) error {
	repository, err := output(ctx, module, nil, "git", "rev-parse", "--path-format=absolute", "--git-common-dir")
	if err != nil {
		return err
	}
	if _, err := output(ctx, module, nil, "git", "clone", "--quiet", "--shared", "--no-checkout", strings.TrimSpace(repository), to); err != nil {
		return err
	}
	_, err = output(ctx, to, nil, "git", "checkout", "--quiet", "--detach", c.commit)
	return err
}

// build builds the command leasehold for a platform. The same commit and Go version give the same
// bytes everywhere: the binary contains no path of the build machine and no C code.
func build(ctx context.Context, source, to string, p platform) (file, *debug.BuildInfo, error) {
	env := []string{"GOOS=" + p.os, "GOARCH=" + p.arch, "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOAMD64=v1", "GOARM64=v8.0", "GOWORK=off"}
	if _, err := output(ctx, source, env, "go", "build", "-trimpath", "-ldflags=-s -w", "-buildvcs=true", "-o", to, "./cmd/leasehold"); err != nil {
		return file{}, nil, err
	}
	content, err := os.ReadFile(to)
	if err != nil {
		return file{}, nil, err
	}
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return file{}, nil, err
	}
	name := "leasehold"
	if p.os == "windows" {
		name += ".exe"
	}
	return file{name: name, content: content, executable: true}, info, nil
}

// output runs a program and returns what it prints to stdout.
func output(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var errs bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), env...), &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return string(out), nil
}
