package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coreos/go-systemd/v22/unit"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"gopkg.in/yaml.v3"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// blocks returns the code blocks of one language in the pages of docs/, by page name.
func blocks(t *testing.T, language string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, path := range lab.Must(filepath.Glob("../../docs/*.md"))(t) {
		page := lab.Must(os.ReadFile(path))(t)
		for _, part := range strings.Split(string(page), "\n```"+language+"\n")[1:] {
			text, _, _ := strings.Cut(part, "\n```")
			found[filepath.Base(path)] = append(found[filepath.Base(path)], text+"\n")
		}
	}
	return found
}

func TestYAMLInGuidesIsValid(t *testing.T) {
	kinds := map[string]int{}
	pages := blocks(t, "yaml")
	for _, text := range pages["kubernetes.md"] {
		for documents := yaml.NewDecoder(strings.NewReader(text)); ; {
			var object struct {
				APIVersion string `yaml:"apiVersion"`
				Kind       string
				Metadata   struct{ Name string }
			}
			if err := documents.Decode(&object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			kinds[object.Kind]++
			if object.APIVersion == "" || object.Metadata.Name == "" {
				t.Errorf("an object has no version or no name:\n%s", text)
			}
		}
	}
	for _, kind := range []string{"Job", "CronJob", "Deployment", "Service", "ServiceAccount"} {
		lab.Want(t, "docs/kubernetes.md has "+kind, kinds[kind] > 0, true)
	}
	for _, text := range pages["ci.md"] {
		var pipeline map[string]any
		if err := yaml.Unmarshal([]byte(text), &pipeline); err != nil || len(pipeline) == 0 {
			t.Errorf("%v\n%s", err, text)
		}
	}
}

// The systemd units in the guide may use only the sections in the first list. Each setting in the
// second list must occur in at least one of the units.
var (
	sections = []string{"Unit", "Service", "Timer", "Install"}
	needed   = []string{"Unit/Description", "Service/ExecStart", "Service/KillMode", "Timer/OnCalendar"}
)

func TestSystemdUnitsInGuideAreValid(t *testing.T) {
	found := map[string]int{}
	dir := t.TempDir()
	var paths []string
	for _, text := range blocks(t, "ini")["systemd.md"] {
		options, err := unit.DeserializeOptions(strings.NewReader(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		for _, o := range options {
			found[o.Section+"/"+o.Name]++
			if !slices.Contains(sections, o.Section) || o.Value == "" {
				t.Errorf("[%s] %s=%s", o.Section, o.Name, o.Value)
			}
		}
		first, _, _ := strings.Cut(text, "\n")
		path := filepath.Join(dir, filepath.Base(first))
		// systemd-analyze verify refuses a unit whose program does not exist. So the test replaces
		// the program with /bin/true.
		lab.OK(t, os.WriteFile(path, []byte(strings.ReplaceAll(text, "/usr/local/bin/", "/bin/true /")), 0o600))
		paths = append(paths, path)
	}
	for _, name := range needed {
		lab.Want(t, "docs/systemd.md has "+name, found[name] > 0, true)
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		return // the checks below need systemd-analyze
	}
	lab.Output(t, exec.Command(analyze, append([]string{"verify"}, paths...)...))
}

func TestContainerRunsStaticBinaryAsNonRootUser(t *testing.T) {
	text := lab.Must(os.ReadFile("../../cmd/leasehold/Dockerfile"))(t)
	parsed := lab.Must(parser.Parse(bytes.NewReader(text)))(t)
	for _, w := range parsed.Warnings {
		t.Errorf("%s %v", w.Short, w.Detail)
	}
	stages, arguments, err := instructions.Parse(parsed.AST, nil)
	if err != nil || len(arguments) > 0 || len(stages) != 2 {
		t.Fatalf("%d stages, %d arguments, %v", len(stages), len(arguments), err)
	}
	var user, entry string
	static := false
	for _, c := range stages[0].Commands {
		if run, ok := c.(*instructions.RunCommand); ok {
			static = static || strings.HasPrefix(strings.Join(run.CmdLine, " "), "CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' ")
		}
	}
	for _, c := range stages[1].Commands {
		switch c := c.(type) {
		case *instructions.UserCommand:
			user = c.User
		case *instructions.EntrypointCommand:
			entry = strings.Join(c.CmdLine, " ")
		}
	}
	lab.Want(t, "base of the image", stages[1].BaseName, "scratch")
	lab.Want(t, "binary is static", static, true)
	if id, _, _ := strings.Cut(user, ":"); id == "" || strings.Trim(id, "0123456789") != "" || strings.Trim(id, "0") == "" {
		t.Errorf("user %q is root, or not a number that Kubernetes can check", user)
	}
	lab.Want(t, "entry point", entry, "/usr/local/bin/leasehold")
}
