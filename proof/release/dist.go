package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// platform is an operating system and an architecture for which a release is built.
type platform struct{ os, arch string }

var platforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"},
	{"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
}

// dist builds a release from the commit that is checked out in the directory "module". It builds
// twice, in different directories. If both builds are identical, it writes the files to the
// directory "out".
func dist(ctx context.Context, module, out string) error {
	if err := errors.Join(requireReleaseGo(ctx, module), requireCommitted(ctx, module)); err != nil {
		return err
	}
	c, err := checkedOut(ctx, module)
	if err != nil {
		return err
	}
	first, err := releaseOf(ctx, module, c, platforms)
	if err != nil {
		return err
	}
	second, err := releaseOf(ctx, module, c, platforms)
	if err != nil {
		return err
	}
	if err := same(first, second); err != nil {
		return err
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o750); err != nil {
		return err
	}
	for _, f := range first {
		if err := os.WriteFile(filepath.Join(out, f.name), f.content, 0o600); err != nil {
			return err
		}
		fmt.Printf("%9d  %s\n", len(f.content), filepath.Join(out, f.name))
	}
	return nil
}

// The function "same" returns an error that lists the files that differ between two builds of a
// release, or nil if no file differs.
func same(a, b []file) error {
	again := map[string][]byte{}
	for _, f := range b {
		again[f.name] = f.content
	}
	var problems []error
	for _, f := range a {
		if content, ok := again[f.name]; !ok || !bytes.Equal(f.content, content) {
			problems = append(problems, fmt.Errorf("%s is not the same when it is built again", f.name))
		}
	}
	if len(a) != len(b) {
		problems = append(problems, fmt.Errorf("%d files, and %d when they are built again", len(a), len(b)))
	}
	return errors.Join(problems...)
}

// releaseOf builds an archive and a bill of materials for each platform, and a file with their
// checksums. It builds the binaries in a new clone of the commit. The manual comes from the code of
// this program: see requireCommitted.
func releaseOf(ctx context.Context, module string, c checkout, on []platform) ([]file, error) {
	dir, err := os.MkdirTemp("", "leasehold-release-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	source := filepath.Join(dir, "source")
	if err := clone(ctx, module, c, source); err != nil {
		return nil, err
	}
	documents, err := read(source, "LICENSE", "README.md", "CHANGELOG.md")
	if err != nil {
		return nil, err
	}
	manual, err := manual(c.time)
	if err != nil {
		return nil, err
	}
	var files []file
	for _, p := range on {
		binary, info, err := build(ctx, source, filepath.Join(dir, "binary"), p)
		if err != nil {
			return nil, err
		}
		name := strings.Join([]string{"leasehold", info.Main.Version, p.os, p.arch}, "_")
		bill, err := billOfMaterials(info, p, c.time)
		if err != nil {
			return nil, err
		}
		content := slices.Concat([]file{binary}, documents, manual)
		archive, err := pack(name, content, p, c.time)
		if err != nil {
			return nil, err
		}
		files = append(files, archive, file{name: name + ".cdx.json", content: bill})
	}
	slices.SortFunc(files, byName)
	var sums bytes.Buffer
	for _, f := range files {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(f.content), f.name)
	}
	return append(files, file{name: "SHA256SUMS", content: sums.Bytes()}), nil
}

// file is a file of a release, or a file inside an archive of a release.
type file struct {
	name       string
	content    []byte
	executable bool
}

func byName(a, b file) int { return strings.Compare(a.name, b.name) }

// read returns the named files of a directory.
func read(dir string, names ...string) ([]file, error) {
	var files []file
	for _, name := range names {
		content, err := fs.ReadFile(os.DirFS(dir), name)
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: name, content: content})
	}
	return files, nil
}
