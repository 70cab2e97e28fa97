//go:build unix

package cli_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold/internal/cli"
)

// fence is a block of code in a document.
type fence struct {
	path           string // of the document, from the module's root
	line           int
	language, text string
}

func (f fence) String() string { return fmt.Sprintf("%s:%d", f.path, f.line) }

// documents are those that patterns match, by their paths from the module's root.
func documents(t *testing.T, patterns ...string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range patterns {
		paths, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: no documents, %v", pattern, err)
		}
		for _, path := range paths {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			name, err := filepath.Rel("../..", path)
			if err != nil {
				t.Fatal(err)
			}
			texts[filepath.ToSlash(name)] = string(b)
		}
	}
	return texts
}

// fences are the blocks of code in documents.
func fences(documents map[string]string) []fence {
	var found []fence
	for _, path := range slices.Sorted(maps.Keys(documents)) {
		var in *fence
		for i, line := range strings.Split(documents[path], "\n") {
			switch {
			case in == nil && strings.HasPrefix(line, "```"):
				in = &fence{path: path, line: i + 1, language: strings.TrimPrefix(line, "```")}
			case in != nil && line == "```":
				found = append(found, *in)
				in = nil
			case in != nil:
				in.text += line + "\n"
			}
		}
	}
	return found
}

// guides are the documents whose shell lines run here.
var guides = []string{"README.md", "docs/ci.md", "docs/cron.md", "docs/operating.md", "docs/timing.md"}

// programs are what the lines of the guides start.
var programs = []string{"report.sh", "deploy.sh", "render.sh", "scheduler.sh", "sync.sh", "index.sh", "thumbnails.sh", "test.sh"}

// aReader is a directory with the programs of the guides, and a shell that finds
// them and leasehold.
func aReader(t *testing.T) (dir string, env []string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range programs {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\nexit 0\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	env = bare(dir)
	for i, v := range env {
		if path, ok := strings.CutPrefix(v, "PATH="); ok {
			env[i] = "PATH=" + dir + ":" + path
		}
	}
	return dir, env
}

// reads runs a script as a reader would, with a table where there is AWS.
func reads(t *testing.T, script string, aws bool) {
	t.Helper()
	dir, env := aReader(t)
	command := []string{"sh", "-euc", script}
	if aws {
		command = append([]string{"leasehold", "local", "--addr", "127.0.0.1:0", "--", "sh", "-euc",
			"leasehold table create --table locks >/dev/null; export LEASEHOLD_TABLE=locks\n" + script}, command[3:]...)
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Env = dir, env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s\nprinted\n%s", err, script, out)
	}
}

// elsewhere says of a shell block why it does not run here.
func elsewhere(text string) (why string) {
	switch {
	case strings.Contains(text, "go install ") || strings.Contains(text, "go run "):
		return "it installs, or is for a clone"
	case strings.Contains(text, "systemctl "):
		return "it needs systemd"
	}
	return ""
}

func TestTheShellLinesOfTheGuidesRun(t *testing.T) {
	t.Parallel()
	ran := 0
	for _, f := range fences(documents(t, guides...)) {
		if f.language != "sh" || elsewhere(f.text) != "" {
			continue
		}
		ran++
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			// TestScripts/demo plays the demo.
			reads(t, strings.ReplaceAll(f.text, "leasehold demo", "true"), f.path != "README.md")
		})
	}
	if ran < 3 {
		t.Errorf("only %d blocks were found", ran)
	}
}

// blockOf is the shell block of the page for operators that has a text.
func blockOf(t *testing.T, text string) string {
	t.Helper()
	for _, f := range fences(documents(t, "docs/operating.md")) {
		if f.language == "sh" && strings.Contains(f.text, text) {
			return f.text
		}
	}
	t.Fatalf("no block has %q", text)
	return ""
}

func TestTheLinesForAStuckHolderBreakAKeyThatWasBrokenBefore(t *testing.T) {
	t.Parallel()
	lines := blockOf(t, "leasehold break import/7 --yes")
	reads(t, lines+lines, true)
}

func TestTheLineThatAsksWhetherAKeyIsHeldDoesNotCallItFreeInTrouble(t *testing.T) {
	t.Parallel()
	line := blockOf(t, "--held")
	dir, env := aReader(t)
	env = append(env, "LEASEHOLD_FILE="+filepath.Join(dir, "locks.db"))
	for _, c := range []struct {
		before string
		free   bool
	}{{"", false}, {"leasehold run import/7 -- true", true}, {"leasehold acquire import/7 >/dev/null", false}} {
		cmd := exec.Command("sh", "-c", c.before+"\n"+line)
		cmd.Dir, cmd.Env = dir, env
		if out, _ := cmd.Output(); strings.Contains(string(out), "free") != c.free {
			t.Errorf("after %q it prints %q", c.before, out)
		}
	}
}

var crontabTime = regexp.MustCompile(`^(?:\S+ ){5}`)

func TestTheCrontabLinesOfTheGuidesRun(t *testing.T) {
	t.Parallel()
	ran := 0
	for _, f := range fences(documents(t, guides...)) {
		if f.language != "crontab" {
			continue
		}
		var settings, jobs []string
		for line := range strings.Lines(f.text) {
			line = strings.TrimSuffix(line, "\n")
			if at := crontabTime.FindString(line); at != "" {
				if strings.Contains(strings.ReplaceAll(line, `\%`, ""), "%") {
					t.Errorf("%v: a bare %% is a new line in a crontab: %s", f, line)
				}
				jobs = append(jobs, strings.ReplaceAll(strings.TrimPrefix(line, at), `\%`, "%"))
				continue
			}
			if !strings.HasPrefix(line, "PATH=") && !strings.HasPrefix(line, "AWS_REGION=") {
				settings = append(settings, "export "+line)
			}
		}
		ran += len(jobs)
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			script := strings.Join(append(settings, jobs...), "\n")
			reads(t, script, !strings.Contains(script, "--file"))
		})
	}
	if ran == 0 {
		t.Error("no lines were found")
	}
}

func TestTheCommandOfTheREADMEWorksInAShellThatIsForAWS(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("go", "run", "./cmd/leasehold", "run", "hello", "--", "echo", "it works")
	cmd.Dir = "../.."
	environ := slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "LEASEHOLD_") })
	cmd.Env = append(environ, "XDG_STATE_HOME="+t.TempDir(),
		"AWS_PROFILE=no-such-profile", "AWS_REGION=eu-west-3", "AWS_ENDPOINT_URL=http://127.0.0.1:9", "LEASEHOLD_OWNER=somebody-else")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || string(out) != "it works\n" {
		t.Errorf("%v\n%s%s", err, out, &stderr)
	}
	const says = " is set, but a leasehold that runs from its own source is only being tried out\n"
	if !strings.Contains(stderr.String(), says) {
		t.Errorf("it does not say %q: %s", says, &stderr)
	}
}

func TestTheProgramInTheREADMERunsAsPrinted(t *testing.T) {
	t.Parallel()
	var source string
	for _, f := range fences(documents(t, "README.md")) {
		if f.language == "go" {
			source = f.text
		}
	}
	dir, env := aReader(t)
	path := filepath.Join(dir, "main.go")
	if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "program"), path)
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := exec.Command("leasehold", "local", "--addr", "127.0.0.1:0", "--", "sh", "-c", "./program && ./program")
	run.Dir, run.Env = dir, env
	out, err := run.CombinedOutput()
	if want := "working on nightly-report\nworking on nightly-report\n"; err != nil || !strings.HasSuffix(string(out), want) {
		t.Errorf("%v\n%s", err, out)
	}
}

var (
	inABlock    = regexp.MustCompile(`(?m)(?:^(?:[ $]|- )*|&& |; |\$\()(leasehold .*)`)
	inASentence = regexp.MustCompile("`(leasehold [^`\n]*)`")
	fenced      = regexp.MustCompile("(?ms)^```.*?^```$")
	shellWord   = regexp.MustCompile(`(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^\s"'|;&<>#()])+|[|;&<>#()]`)
)

// arguments are the words of a command line, up to the first redirection, pipe or
// comment. What the shell or the reader would put in is a number, which every flag
// takes but those that have a list of values.
func arguments(line string) []string {
	var args []string
	for _, word := range shellWord.FindAllString(line, -1) {
		if strings.ContainsAny(word[:1], "|;&<>#()") {
			break
		}
		word = strings.Trim(word, `"'`)
		if word == "N" || word == "TOKEN" || strings.Contains(word, "$") {
			word = "1"
		}
		args = append(args, word)
	}
	return args
}

func TestEveryCommandLineInTheDocumentsHasFlagsThatExist(t *testing.T) {
	t.Parallel()
	var lines [][2]string // where, what
	texts := documents(t, "README.md", "docs/*.md", "docs/*/*.md")
	for _, f := range fences(texts) {
		for _, m := range inABlock.FindAllStringSubmatch(f.text, -1) {
			if f.language != "go" {
				lines = append(lines, [2]string{f.String(), m[1]})
			}
		}
	}
	for path, text := range texts {
		for _, m := range inASentence.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			lines = append(lines, [2]string{path, m[1]})
		}
	}
	for _, line := range lines {
		if err := cli.CheckArgs(arguments(line[1])[1:]); err != nil {
			t.Errorf("%s: %s: %v", line[0], line[1], err)
		}
	}
	if len(lines) < 50 {
		t.Errorf("only %d command lines were found", len(lines))
	}
}
