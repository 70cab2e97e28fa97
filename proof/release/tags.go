package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

const mainModule = "github.com/leasehold-go/leasehold"

// adapters lists the nested modules whose versions are tagged together with the main
// module.
var adapters = []string{"contrib/leaseholdgocron", "contrib/leaseholdotel", "contrib/leaseholdprom"}

// tagProblems returns the reasons why "version" cannot be the tag of the commit that is checked out
// in the given module's directory.
func tagProblems(ctx context.Context, module, version string) (problems []string, err error) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if semver.Canonical(version) != version || semver.Build(version) != "" {
		bad("%s is not a version such as v1.2.3", version)
		return problems, nil
	}
	root, err := modFile(filepath.Join(module, "go.mod"))
	if err != nil {
		return nil, err
	}
	if len(root.Replace) > 0 {
		bad("go.mod replaces modules: nobody who requires it would get them")
	}
	for _, adapter := range adapters {
		if required, err := requiredBy(module, adapter); err != nil {
			return nil, err
		} else if required != version {
			bad("%s/go.mod requires %s %s: change it to %s", adapter, mainModule, required, version)
		}
	}
	changes, err := os.ReadFile(filepath.Join(module, "CHANGELOG.md"))
	if err != nil {
		return nil, err
	}
	if !strings.Contains(string(changes), "\n## ["+strings.TrimPrefix(version, "v")+"] - ") {
		bad("CHANGELOG.md has no heading ## [%s] - YYYY-MM-DD", strings.TrimPrefix(version, "v"))
	}
	tags := []string{version}
	for _, adapter := range adapters {
		tags = append(tags, adapter+"/"+version)
	}
	head, err := output(ctx, module, nil, "git", "rev-parse", "HEAD")
	if err != nil {
		return nil, err
	}
	for _, tag := range tags {
		found, err := output(ctx, module, nil, "git", "tag", "--list", tag)
		if err != nil {
			return nil, err
		}
		if found == "" {
			continue
		}
		if at, err := output(ctx, module, nil, "git", "rev-list", "-1", tag); err != nil {
			return nil, err
		} else if at != head {
			bad("tag %s is at another commit, %.12s", tag, at)
		}
	}
	return problems, nil
}

// requiredBy returns the version of the main module that the go.mod of an adapter requires.
func requiredBy(module, adapter string) (string, error) {
	f, err := modFile(filepath.Join(module, adapter, "go.mod"))
	if err != nil {
		return "", err
	}
	for _, r := range f.Require {
		if r.Mod.Path == mainModule {
			return r.Mod.Version, nil
		}
	}
	return "", fmt.Errorf("%s/go.mod does not require %s", adapter, mainModule)
}

func modFile(path string) (*modfile.File, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return modfile.Parse(path, content, nil)
}
