package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// workflow contains the fields of a GitHub workflow that matter for security.
type workflow struct {
	Permissions map[string]string `yaml:"permissions"`
	Jobs        map[string]job    `yaml:"jobs"`
}

type job struct {
	Permissions map[string]string `yaml:"permissions"`
	Steps       []step            `yaml:"steps"`
}

type step struct {
	Uses string         `yaml:"uses"`
	Run  string         `yaml:"run"`
	With map[string]any `yaml:"with"`
}

// pinned matches a "uses" line that pins the action to a commit and states the action's
// version in a comment.
var pinned = regexp.MustCompile(`^\s*(- )?uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)

// needs returns the write permissions that a job needs for this step.
func (s step) needs() map[string]string {
	switch {
	case strings.HasPrefix(s.Uses, "actions/attest-build-provenance@"):
		return map[string]string{"id-token": "write", "attestations": "write"}
	case strings.HasPrefix(s.Run, "gh release create "):
		return map[string]string{"contents": "write"}
	}
	return nil
}

// workflowProblems returns the security problems of a workflow.
func workflowProblems(text string) (problems []string) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	var w workflow
	if err := yaml.Unmarshal([]byte(text), &w); err != nil || len(w.Jobs) == 0 {
		bad("the workflow has no jobs: %v", err)
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\n"); strings.Contains(line, "uses:") && !pinned.MatchString(line) {
			bad("an action is not pinned to a commit, with its version in a comment: %s", line)
		}
	}
	if !maps.Equal(w.Permissions, map[string]string{"contents": "read"}) {
		bad("permissions of all jobs: %v", w.Permissions)
	}
	for name, j := range w.Jobs {
		need, checksOut := map[string]string{}, false
		for _, s := range j.Steps {
			maps.Copy(need, s.needs())
			if strings.HasPrefix(s.Uses, "actions/checkout@") {
				checksOut = true
				if s.With["persist-credentials"] != false {
					bad("%s: the checkout keeps credentials", name)
				}
			}
		}
		if !maps.Equal(j.Permissions, need) {
			bad("%s: has permissions %v, needs %v", name, j.Permissions, need)
		}
		if len(need) > 0 && checksOut {
			bad("%s: has write permission, and checks out code that it could run", name)
		}
	}
	return problems
}

// workflows returns the workflows of the repository.
func workflows(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("../../.github/workflows/*")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	texts := map[string]string{}
	for _, path := range paths {
		texts[filepath.Base(path)] = string(lab.Must(os.ReadFile(path))(t))
	}
	return texts
}

func TestGitHubWorkflowsPassSecurityCheck(t *testing.T) {
	for name, text := range workflows(t) {
		for _, problem := range workflowProblems(text) {
			t.Errorf("%s: %s", name, problem)
		}
	}
}

func TestWorkflowSecurityCheckReportsEachRisk(t *testing.T) {
	sound := workflows(t)["release.yml"]
	for what, change := range map[string][2]string{
		"an action pinned to a tag":           {"@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2", "@v4"},
		"an action pinned to half a digest":   {"@11bd71901bbe5b1630ceea73d27597364c9af683", "@11bd719"},
		"a digest without its version":        {" # v4.2.2", ""},
		"a checkout that keeps credentials":   {"          persist-credentials: false\n", ""},
		"a checkout with credentials enabled": {"persist-credentials: false", "persist-credentials: true"},
		"write permission for all jobs":       {"contents: read", "contents: write"},
		"jobs with default permissions":       {"permissions:\n  contents: read\n", ""},
		"a job with too many permissions":     {"contents: write", "packages: write\n      contents: write"},
		"a job with too few permissions":      {"      attestations: write\n", ""},
		"a build job with write permission":   {"    needs: check\n", "    needs: check\n    permissions: {contents: write}\n"},
		"a job that publishes a checkout": {
			"      - uses: actions/download-artifact@",
			"      - uses: actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2\n        with: {persist-credentials: false}\n      - uses: actions/download-artifact@",
		},
	} {
		changed := strings.Replace(sound, change[0], change[1], 1)
		lab.Want(t, what+": the workflow has this text to change: "+change[0], changed != sound, true)
		lab.Want(t, "check has found "+what, len(workflowProblems(changed)) > 0, true)
	}
}

// installsGo returns the workflow's steps that install Go.
func installsGo(t *testing.T, text string) (steps []step) {
	t.Helper()
	var w workflow
	lab.OK(t, yaml.Unmarshal([]byte(text), &w))
	for _, name := range slices.Sorted(maps.Keys(w.Jobs)) {
		for _, s := range w.Jobs[name].Steps {
			if strings.HasPrefix(s.Uses, "actions/setup-go@") {
				steps = append(steps, s)
			}
		}
	}
	return steps
}

func TestReleaseAndContainerImageUseSameGoVersion(t *testing.T) {
	version := strings.TrimPrefix(releaseGo(), "go")
	lab.WantMatch(t, "proof/release/go-version", version, `^1\.\d+\.\d+$`)
	steps := installsGo(t, workflows(t)["release.yml"])
	for _, s := range steps {
		if s.With["go-version-file"] != "proof/release/go-version" || s.With["go-version"] != nil {
			t.Errorf("a release installs Go with %v", s.With)
		}
		// A release must not use the cache: every workflow run of the repository can write to the
		// cache, so its content may be harmful.
		lab.Want(t, "a release uses a cache", s.With["cache"], any(false))
	}
	lab.Want(t, "a step installs Go", len(steps) > 0, true)
	image := lab.Must(os.ReadFile("../../cmd/leasehold/Dockerfile"))(t)
	base := regexp.MustCompile(`(?m)^FROM golang:` + regexp.QuoteMeta(version) + `-bookworm@sha256:[0-9a-f]{64} AS build$`)
	lab.Want(t, "the Dockerfile builds with Go "+version+", pinned to a digest", base.Match(image), true)
}

func TestReleaseBuildRequiresPinnedGoVersion(t *testing.T) {
	programs, out := t.TempDir(), filepath.Join(t.TempDir(), "dist")
	script := "#!/bin/sh\necho go1.0.1\n"
	lab.OK(t, os.WriteFile(filepath.Join(programs, "go"), []byte(script), 0o700))
	t.Setenv("PATH", programs+string(filepath.ListSeparator)+os.Getenv("PATH"))
	err := dist(t.Context(), "../..", out)
	lab.WantText(t, "dist", err, "this is go1.0.1, and a release is built with "+releaseGo())
	lab.WantNoFile(t, "release that dist has written despite the error", out)
}

func TestReleaseFilesAreAttestedBeforePublishing(t *testing.T) {
	var w workflow
	lab.OK(t, yaml.Unmarshal([]byte(workflows(t)["release.yml"]), &w))
	attested, published := -1, -1
	for i, s := range w.Jobs["publish"].Steps {
		switch {
		case strings.HasPrefix(s.Uses, "actions/attest-build-provenance@") && s.With["subject-path"] == "dist/*":
			attested = i
		case strings.HasPrefix(s.Run, "gh release create ") && strings.HasSuffix(s.Run, " dist/*"):
			published = i
		}
	}
	if attested < 0 || published < attested {
		t.Errorf("dist/* is attested in step %d, and published in step %d", attested, published)
	}
}

// database starts a server that imitates Go's vulnerability database.
func database(t *testing.T, answer http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server
}

func healthy(w http.ResponseWriter, _ *http.Request) {
	_, _ = w.Write([]byte(`{"modified":"2026-11-20T10:00:00Z"}`)) // ignores the error, which occurs if the client has disconnected
}

// checked calls vulnerabilityCheck.released, with the function "check" in place of govulncheck. It
// returns the output, the number of checked modules, and the error that released returned.
func checked(t *testing.T, server *httptest.Server, check func() error) (said string, modules int, err error) {
	t.Helper()
	var say strings.Builder
	v := vulnerabilityCheck{
		database: server.URL, client: server.Client(), say: &say,
		check: func(context.Context, string) error { modules++; return check() },
	}
	err = v.released(t.Context(), "../..")
	return say.String(), modules, err
}

func TestVulnerableModuleFailsReleaseCheck(t *testing.T) {
	for _, found := range []error{errors.New("exit status 3"), nil} {
		said, modules, err := checked(t, database(t, healthy), func() error { return found })
		if !errors.Is(err, found) || modules != 1+len(adapters) {
			t.Errorf("%v, want %v, after %d modules: %s", err, found, modules, said)
		}
	}
}

func TestGovulncheckIsSkippedIfVulnerabilityDatabaseIsUnusable(t *testing.T) {
	gone := database(t, healthy)
	gone.Close()
	page := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }
	end := make(chan struct{})
	silent := database(t, func(http.ResponseWriter, *http.Request) { <-end })
	defer close(end)
	silent.Client().Timeout = time.Millisecond
	for name, server := range map[string]*httptest.Server{
		"none": gone, "a page": database(t, page), "an error": database(t, http.NotFound), "silent": silent,
	} {
		said, modules, err := checked(t, server, func() error { return errors.New("was run") })
		if err != nil || modules != 0 || !strings.Contains(said, "govulncheck was not run:") {
			t.Errorf("%s: %v after %d modules: %q", name, err, modules, said)
		}
	}
	lab.WantRange(t, "timeout of the real check", newVulnerabilityCheck("").client.Timeout, 1, time.Minute)
}

func TestReleaseCheckPassesIfVulnerabilityDatabaseFailsMidway(t *testing.T) {
	server := database(t, healthy)
	said, modules, err := checked(t, server, func() error {
		server.Close()
		return errors.New("connection refused")
	})
	if err != nil || modules != 1 || !strings.Contains(said, "not run to its end:") {
		t.Errorf("%v after %d modules: %q", err, modules, said)
	}
}
