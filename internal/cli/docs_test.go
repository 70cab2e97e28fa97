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
	"github.com/leasehold-go/leasehold/internal/lab"
)

// fence is a fenced code block in a Markdown document.
type fence struct {
	path           string // path of the document from the module's root
	line           int
	language, text string
}

func (f fence) String() string { return fmt.Sprintf("%s:%d", f.path, f.line) }

// documents returns the texts of the documents that match one of the patterns. The keys of
// the map are the paths of the documents, relative to the module's root.
func documents(t *testing.T, patterns ...string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range patterns {
		paths, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: no documents, %v", pattern, err)
		}
		for _, path := range paths {
			b := lab.Must(os.ReadFile(path))(t)
			name := lab.Must(filepath.Rel("../..", path))(t)
			texts[filepath.ToSlash(name)] = string(b)
		}
	}
	return texts
}

// fences returns the fenced code blocks of the documents.
func fences(documents map[string]string) []fence {
	var found []fence
	for _, path := range slices.Sorted(maps.Keys(documents)) {
		var in *fence
		var indent string // indentation of the current block; not empty if the block is in a list
		for i, line := range strings.Split(documents[path], "\n") {
			switch before, language, ok := strings.Cut(line, "```"); {
			case in == nil && ok && strings.Trim(before, " ") == "":
				in, indent = &fence{path: path, line: i + 1, language: language}, before
			case in != nil && line == indent+"```":
				found = append(found, *in)
				in = nil
			case in != nil:
				in.text += strings.TrimPrefix(line, indent) + "\n"
			}
		}
	}
	return found
}

// guides contains patterns for the documents whose shell blocks these tests run.
var guides = []string{"README.md", "CONTRIBUTING.md", ".github/*.md", "docs/*.md", "docs/*/*.md", "proof/*/*.md"}

// A place is the environment in which a test runs a shell block.
type place int

const (
	inTable place = iota // a new table on a server of the DynamoDB API
	inFile               // a local store, without AWS settings
	inClone              // a clone of the repository
)

// An exception is a rule for shell blocks that the test cannot run as printed. It contains
// the changes to make before the run, or the reason why the test skips the block.
type exception struct {
	path    string   // path of the document
	has     string   // a text that occurs only in this block; if the text is empty, the rule is for all blocks of the document
	why     string   // reason to skip the block; empty if the test runs the block
	in      place    // environment in which the block runs
	instead []string // pairs of texts: in the block, the test replaces the first text of a pair with the second text
	then    string   // shell lines that the test adds after the block
}

// ofProof is the reason to skip shell blocks that run code of the separate Go module in proof/.
const ofProof = "make check runs it: the module of proof has dependencies of its own"

// exceptions contains the rules for the shell blocks that cannot run as printed. The test
// runs all other blocks as printed, with a new table.
var exceptions = []exception{
	{path: "README.md", has: "go install ", why: "it downloads a release"},
	{path: "README.md", has: "make test", in: inClone, instead: []string{"make test", "make -n test"}},
	{path: "CONTRIBUTING.md", has: "git clone ", in: inClone, instead: []string{
		"git clone https://github.com/leasehold-go/leasehold && cd leasehold", "", "make test ", "make -n test ", "make check", "make -n check",
	}},
	{path: "CONTRIBUTING.md", has: "LEASEHOLD_SEED=", in: inClone, instead: []string{"LEASEHOLD_SEEDS=100000", "LEASEHOLD_SEEDS=10"}},
	{path: ".github/SECURITY.md", has: "gh attestation", why: "it verifies a release, with GitHub's command"},
	{path: "docs/getting-started.md", why: "TestGettingStartedCommandsRunAsPrinted types them one after another"},
	{path: "docs/languages.md", has: "jq", instead: []string{
		"leasehold ls --json", "leasehold acquire -q -l 1s import/7 >/dev/null; leasehold ls --json", "jq ", "fields ",
	}},
	{path: "docs/local-store.md", has: "-m 2770", in: inFile, instead: []string{"/var/lib/leasehold", "store", "GROUP", "$(id -g)"}, then: theStore},
	{path: "docs/local-store.md", has: "-m 1777", in: inFile, instead: []string{"/var/lib/leasehold", "store"}, then: theStore},
	{path: "docs/metrics.md", has: "--metrics", instead: []string{"/var/lib/node_exporter/textfile/", ""}, then: "test -s nightly-report.prom"},
	{path: "docs/recipes.md", has: "leasehold elect", instead: []string{
		"--http :8081 -- ./scheduler &", "--http 127.0.0.1:0 -- sh -c 'echo >leads; exec sleep 60' 2>said & elect=$!; trap 'kill $elect' EXIT",
		"curl http://localhost:8081/leader", "until test -s leads; do sleep 0.01; done; fetch $(sed -n 's,.* \\(http://.*\\)/leader.*,\\1,p' said)/leader",
		"curl http://localhost:8081/live", "fetch $(sed -n 's,.* \\(http://.*\\)/leader.*,\\1,p' said)/live",
	}, then: "trap - EXIT; kill $elect; wait $elect || test $? = 143"},
	{path: "docs/ui.md", has: "leasehold ui", instead: []string{"leasehold ui ", "serves leasehold ui ", "127.0.0.1:8765", "127.0.0.1:0"}},
	{path: "docs/internals/aws-errors.md", has: "go test ./aws", why: ofProof},
	{path: "docs/internals/engines.md", has: "go run ./cmd/engines", why: "it installs servers of the DynamoDB API"},
	{path: "docs/internals/performance.md", has: "make bench", in: inClone, instead: []string{"make bench", "make -n bench"}},
	{path: "docs/internals/releasing.md", has: "git tag", why: "it publishes a release"},
	{path: "docs/internals/releasing.md", has: "gh attestation", why: "it verifies a release, with GitHub's command"},
	{path: "docs/internals/reliability.md", has: "./load", why: ofProof},
	{path: "docs/internals/reliability.md", has: "-run History", why: ofProof},
	{path: "docs/migrating/README.md", has: "table rewrite", instead: []string{
		"leasehold table rewrite --table locks --layout dynamolock </dev/null", "leasehold run -q k -- true; ! leasehold table rewrite --table locks --layout dynamolock </dev/null",
	}, then: "leasehold table rewrite --table locks --layout dynamolock </dev/null"},
	{path: "proof/interop/README.md", has: "go run ./cmd/record", why: "it installs the other libraries, and " + ofProof},
	{path: "proof/interop/README.md", has: "LEASEHOLD_DYNAMOLOCK=", why: "it builds a program with a checkout of dynamolock"},
}

// theStore is a script that runs leasehold on a machine whose users share the store in the
// directory ./store. It checks that leasehold has created the store file in this directory.
const theStore = "TEST_MACHINE_DIR=$PWD/store leasehold run -q import/7 -- true; test -s store/locks.db"

// treated returns the exception for the block f, and the script that the test runs for the
// block. If there is no exception, the script is the block itself.
func (f fence) treated(t *testing.T) (exception, string) {
	t.Helper()
	var found []exception
	for _, of := range exceptions {
		if of.path == f.path && strings.Contains(f.text, of.has) {
			found = append(found, of)
		}
	}
	switch {
	case len(found) == 0:
		return exception{}, f.text
	case len(found) > 1:
		t.Errorf("%v has %d exceptions", f, len(found))
	}
	for i := 0; i < len(found[0].instead); i += 2 {
		lab.WantParts(t, f.String(), f.text, found[0].instead[i])
	}
	return found[0], strings.NewReplacer(found[0].instead...).Replace(f.text) + found[0].then
}

// programs lists the programs that shell blocks of the guides run as CMD. The function
// aReader creates these programs.
var programs = []string{"report.sh", "deploy.sh", "sync.sh", "index.sh", "thumbnails.sh", "hourly.sh", "test.sh"}

// serves is a script that starts a server command, waits until the command has printed its
// address, and then terminates the command.
const serves = `#!/bin/sh
rm -f served
"$@" >served & pid=$!
until test -s served; do kill -0 $pid || exit; sleep 0.01; done
kill $pid; wait $pid
`

// aReader prepares the working directory of a reader who types the commands of the guides. The
// directory contains the programs that these commands call, and PATH in env contains the directory.
func aReader(t *testing.T) (dir string, env []string) {
	t.Helper()
	dir = t.TempDir()
	texts := map[string]string{"serves": serves}
	for _, name := range programs {
		texts[name] = "#!/bin/sh\nexit 0\n"
	}
	for name, text := range texts {
		lab.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	env = bare(dir)
	for i, v := range env {
		if path, ok := strings.CutPrefix(v, "PATH="); ok {
			env[i] = "PATH=" + dir + ":" + path
		}
	}
	return dir, env
}

// goCaches returns the variables GOCACHE and GOMODCACHE of this process. With these variables, the
// go command reuses builds and downloads although the test sets another HOME.
func goCaches(t *testing.T) []string {
	t.Helper()
	paths := strings.Fields(string(lab.Must(exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output())(t)))
	return []string{"GOCACHE=" + paths[0], "GOMODCACHE=" + paths[1]}
}

// The helper "reads" runs a script in the directory and environment of a reader of the guides.
// The script must succeed.
func reads(t *testing.T, script string, in place) {
	t.Helper()
	dir, env := aReader(t)
	command := []string{"sh", "-euc", script}
	switch in {
	case inTable:
		command = append([]string{"leasehold", "local", "--addr", "127.0.0.1:0", "--", "sh", "-euc",
			"leasehold table create --table locks >/dev/null; export LEASEHOLD_TABLE=locks\n" + script}, command[3:]...)
	case inClone:
		dir, env = "../..", append(env, goCaches(t)...)
	case inFile:
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Env = dir, env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s\nprinted\n%s", err, script, out)
	}
}

func TestShellBlocksInGuidesRunWithoutError(t *testing.T) {
	t.Parallel()
	ran := 0
	for _, f := range fences(documents(t, guides...)) {
		if f.language != "sh" {
			continue
		}
		of, script := f.treated(t)
		if of.why != "" {
			continue
		}
		ran++
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			reads(t, script, of.in)
		})
	}
	if ran < 15 {
		t.Errorf("only %d blocks were found", ran)
	}
}

func TestEveryExceptionMatchesBlockInGuides(t *testing.T) {
	t.Parallel()
	blocks := fences(documents(t, guides...))
	for _, of := range exceptions {
		if !slices.ContainsFunc(blocks, func(f fence) bool {
			return (f.language == "sh" || f.language == "crontab") && f.path == of.path && strings.Contains(f.text, of.has)
		}) {
			t.Errorf("%s has no block with %q", of.path, of.has)
		}
	}
}

var commandTyped = regexp.MustCompile(`(?m)^ *(?:leasehold|go|make|git|docker|kubectl|aws) `)

func TestGuideBlocksWithCommandsAreMarkedAsShell(t *testing.T) {
	t.Parallel()
	for _, f := range fences(documents(t, guides...)) {
		if f.language == "" && commandTyped.MatchString(f.text) {
			t.Errorf("%v has commands: mark it as sh, so that a test runs them", f)
		}
	}
}

// theClone contains the lines of docs/getting-started.md that clone the repository and
// enter the clone.
const theClone = "git clone https://github.com/leasehold-go/leasehold\ncd leasehold\n"

// theShell is the line of docs/getting-started.md that starts a shell. The reader types all
// later lines into that shell.
const theShell = "leasehold local -- sh\n"

func TestGettingStartedCommandsRunAsPrinted(t *testing.T) {
	t.Parallel()
	var walk strings.Builder
	for _, f := range fences(documents(t, "docs/getting-started.md")) {
		walk.WriteString(f.text)
	}
	before, typed, ok := strings.Cut(walk.String(), theShell)
	before, isClone := strings.CutPrefix(before, theClone)
	if !ok || !isClone {
		t.Fatalf("the page has no line %q, or does not begin with %q", theShell, theClone)
	}
	// The line that runs the demo is removed, because TestScriptsInTestdataPass/demo runs the demo.
	script := strings.Replace(before, "\nleasehold demo\n", "\n", 1) + strings.TrimSuffix(theShell, "\n") + " -eu <<'END'\n" + typed + "END\n"
	cmd := exec.Command("sh", "-euc", script)
	cmd.Dir = "../.." // the test uses this repository instead of a clone
	goes := lab.Must(exec.LookPath("go"))(t)
	// The script installs the program leasehold with go install, and must then run this program. So
	// PATH omits the directory of the leasehold that the other tests run.
	cmd.Env = append(append(bare(t.TempDir()), "PATH="+filepath.Dir(goes)+":/usr/local/bin:/usr/bin:/bin"), goCaches(t)...)
	lab.WantParts(t, "the output of the script", lab.Output(t, cmd), "it works\n", "exit code 75\n", "written\n", "working on nightly-report\n",
		" took over from ", "created locks in ", "ok\trights\t", `"Action": [`)
}

// blockOf returns the shell block of docs/operating.md that contains the given text.
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

func TestGuideBlockAboutStuckHolderCanRunTwice(t *testing.T) {
	t.Parallel()
	lines := blockOf(t, "leasehold break import/7 --yes")
	reads(t, lines+lines, inTable)
}

func TestScriptInGuideReportsKeyAsFreeOnlyIfKeyIsFree(t *testing.T) {
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
		out, _ := cmd.Output()
		lab.Want(t, fmt.Sprintf("the key is free after %q: %s", c.before, out), strings.Contains(string(out), "free"), c.free)
	}
}

var crontabTime = regexp.MustCompile(`^(?:\S+ ){5}`)

func TestCrontabLinesInGuidesRunWithoutError(t *testing.T) {
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
				lab.WantNoPart(t, f.String()+": a crontab, in which a bare % is a new line", strings.ReplaceAll(line, `\%`, ""), "%")
				jobs = append(jobs, strings.ReplaceAll(strings.TrimPrefix(line, at), `\%`, "%"))
				continue
			}
			if !strings.HasPrefix(line, "PATH=") && !strings.HasPrefix(line, "AWS_REGION=") {
				settings = append(settings, "export "+line)
			}
		}
		ran += len(jobs)
		f.text = strings.Join(append(settings, jobs...), "\n") + "\n"
		of, script := f.treated(t)
		in := of.in
		if strings.Contains(script, "--file") {
			in = inFile
		}
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			reads(t, script, in)
		})
	}
	lab.Want(t, "lines were found", ran > 0, true)
}

func TestREADMECommandsSucceedDespiteBadAWSSettings(t *testing.T) {
	t.Parallel()
	readme := lab.Must(os.ReadFile("../../README.md"))(t)
	caches := goCaches(t)
	for _, c := range []struct{ name, pattern, prints string }{ // commands of the README that need a clone, and the output that they must print
		{"run", `(?m)^go run \./cmd/leasehold run .*$`, "it works\n"},
		{"local", `go run \./cmd/leasehold local [^` + "`" + `]*`, "working on nightly-report\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			line := strings.Replace(string(regexp.MustCompile(c.pattern).Find(readme)), "hello.db", filepath.Join(t.TempDir(), "hello.db"), 1)
			cmd := exec.Command("sh", "-c", line)
			cmd.Dir = "../.."
			environ := slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "LEASEHOLD_") })
			cmd.Env = slices.Concat(environ, caches, []string{"HOME=" + t.TempDir(),
				"AWS_PROFILE=no-such-profile", "AWS_REGION=eu-west-3", "AWS_ENDPOINT_URL=http://127.0.0.1:9", "LEASEHOLD_OWNER=somebody-else"})
			var stderr strings.Builder
			cmd.Stderr = &stderr
			if out, err := cmd.Output(); err != nil || string(out) != c.prints {
				t.Errorf("%v\n%s%s", err, out, &stderr)
			}
			const says = " is set, but a leasehold that runs from its own source is only being tried out\n"
			if c.name == "run" && !strings.Contains(stderr.String(), says) {
				t.Errorf("stderr does not contain %q: %s", says, &stderr)
			}
		})
	}
}

var (
	inABlock    = regexp.MustCompile(`(?m)(?:^(?:[ $]|- )*(?:run: )?|&& |; |\$\(|^ExecStart=/usr/local/bin/)(leasehold .*)`)
	inAPod      = regexp.MustCompile(`(?m)^ *command: \["(leasehold", .*)\]$`)
	inASentence = regexp.MustCompile("`(leasehold [^`\n]*)`")
	fenced      = regexp.MustCompile("(?ms)^```.*?^```$")
	shellWord   = regexp.MustCompile(`(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^\s"'|;&<>#()])+|[|;&<>#()]`)
)

// arguments returns the words of a command line, up to the first redirection, pipe or comment. It
// replaces each variable and placeholder with 1. For a flag that does not accept 1, such as a flag
// with a fixed list of values, documents must show a real value.
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

func TestCommandLinesInDocumentsUseExistingFlags(t *testing.T) {
	t.Parallel()
	var lines [][2]string // pairs: the position of a command line in the documents, and the command line
	texts := documents(t, "README.md", "docs/*.md", "docs/*/*.md")
	for _, f := range fences(texts) {
		for _, m := range inABlock.FindAllStringSubmatch(f.text, -1) {
			if f.language != "go" {
				lines = append(lines, [2]string{f.String(), m[1]})
			}
		}
		for _, m := range inAPod.FindAllStringSubmatch(f.text, -1) {
			lines = append(lines, [2]string{f.String(), strings.ReplaceAll(strings.ReplaceAll(m[1], `",`, ""), `"`, "")})
		}
	}
	for path, text := range texts {
		for _, m := range inASentence.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			lines = append(lines, [2]string{path, m[1]})
		}
	}
	for _, line := range lines {
		lab.WantErr(t, line[0]+": "+line[1], cli.CheckArgs(arguments(line[1])[1:]), nil)
	}
	if len(lines) < 50 {
		t.Errorf("only %d command lines were found", len(lines))
	}
}
