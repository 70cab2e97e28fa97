//go:build unix

package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
)

// published is the JSON schema that leasehold help json --json prints.
type published struct {
	Defs map[string]map[string]any `json:"$defs"`
}

func readSchema(t *testing.T) published {
	t.Helper()
	var s published
	lab.OK(t, json.Unmarshal(lab.Must(os.ReadFile("say/schema.json"))(t), &s))
	return s
}

// check compares the value v with the schema "want", and returns the differences. The parameter
// "path" is the position of v in the output. Unlike a JSON Schema validator, check also reports
// fields that are not in the schema.
func (s published) check(path string, want map[string]any, v any) []string {
	if ref, ok := want["$ref"].(string); ok {
		return s.check(path, s.Defs[strings.TrimPrefix(ref, "#/$defs/")], v)
	}
	var wrong []string
	add := func(format string, args ...any) { wrong = append(wrong, path+": "+fmt.Sprintf(format, args...)) }
	if enum, ok := want["enum"].([]any); ok && !slices.Contains(enum, v) {
		add("%v is not one of %v", v, enum)
	}
	switch v := v.(type) {
	case string:
		if want["type"] != "string" {
			add("a string, not %v", want["type"])
		}
		if want["format"] == "date-time" {
			if at, err := time.Parse("2006-01-02T15:04:05.000Z", v); err != nil || at.IsZero() {
				add("%s is not a time in UTC with milliseconds", v)
			}
		}
	case float64:
		if want["type"] != "number" && (want["type"] != "integer" || v != float64(int64(v))) {
			add("%v is not of type %v", v, want["type"])
		}
	case bool:
		if want["type"] != "boolean" {
			add("a boolean, not %v", want["type"])
		}
	case []any:
		items, _ := want["items"].(map[string]any)
		if want["type"] != "array" || items == nil {
			add("an array, not %v", want["type"])
			break
		}
		for i, e := range v {
			wrong = append(wrong, s.check(fmt.Sprintf("%s[%d]", path, i), items, e)...)
		}
	case map[string]any:
		if want["type"] != "object" {
			add("an object, not %v", want["type"])
		}
		required, _ := want["required"].([]any)
		for _, name := range required {
			if _, ok := v[name.(string)]; !ok {
				add("%s is missing", name)
			}
		}
		fields, closed := want["properties"].(map[string]any)
		for name, e := range v {
			field, known := fields[name].(map[string]any)
			switch {
			case known:
				wrong = append(wrong, s.check(path+"."+name, field, e)...)
			case closed:
				add("%s is not in the schema", name)
			}
		}
	default:
		add("%v", v)
	}
	return wrong
}

// lines checks each line of the output against the schema of the named object, and returns
// the number of lines.
func (s published) lines(t *testing.T, object, output string) int {
	t.Helper()
	n := 0
	for line := range strings.Lines(output) {
		n++
		var v any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Errorf("%s: %v: %s", object, err, line)
			continue
		}
		if wrong := s.check(object, s.Defs[object], v); s.Defs[object] == nil || len(wrong) > 0 {
			t.Errorf("%s: %q: %s", object, wrong, line)
		}
	}
	return n
}

func TestJSONOutputMatchesSchemaInEveryLayout(t *testing.T) {
	t.Parallel()
	s := readSchema(t)
	for _, name := range layout.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, file := storeFile(t)
			env := append(bare(dir), "LEASEHOLD_FILE="+file, "LEASEHOLD_LAYOUT="+name)
			grant := filepath.Join(dir, "grant")
			var token string
			for _, c := range []struct {
				object string // name of the schema object on standard output; empty if the command prints nothing there
				errors string // name of the schema object on standard error; empty if the command prints nothing there
				args   []string
			}{
				{"table", "", []string{"table", "create"}},
				{"finding", "", []string{"table", "check"}},
				{"grant", "", []string{"acquire", "k", "-l", "10s"}},
				{"", "error", []string{"acquire", "-n", "k"}},
				{"", "error", []string{"get", "none"}},
				{"", "error", []string{"get", "--nonsense"}},
				{"record", "", []string{"ls"}},
				{"record", "", []string{"ls", "--all"}},
				{"record", "", []string{"ls", "--check=0.1"}},
				{"record", "", []string{"get", "k"}},
				{"", "event", []string{"run", "j", "--", "true"}},
				{"", "event", []string{"run", "-n", "-v", "j2", "--", "true"}},
				{"build", "", []string{"version"}},
				{"record", "", []string{"break", "k", "--yes"}},
				{"record", "", []string{"ls", "--all"}},
				{"", "", []string{"acquire", "m", "-f", grant}},
				{"", "", []string{"release", "-f", grant}},
			} {
				args := append(slices.Clone(c.args), "--json")
				if i := slices.Index(c.args, "--"); i >= 0 {
					args = slices.Insert(slices.Clone(c.args), i, "--json")
				}
				if c.args[0] == "break" {
					args = append(args, "--token", token)
				}
				out, errs, _ := said(t, env, args...)
				var got struct{ Token json.Number }
				if c.object == "grant" && json.Unmarshal([]byte(out), &got) == nil {
					token = got.Token.String()
				}
				all := c.args[0] == "ls" && c.args[len(c.args)-1] == "--all" // ls --all may print nothing: some layouts keep no record of a released lock
				if n := s.lines(t, c.object, out); (n == 0) != (c.object == "") && !all {
					t.Errorf("%v printed %d lines: %s%s", args, n, out, errs)
				}
				if n := s.lines(t, c.errors, errs); (n == 0) != (c.errors == "") {
					t.Errorf("%v wrote %d lines to stderr: %s", args, n, errs)
				}
			}
		})
	}
}

func TestJSONOutputOfElectMatchesSchema(t *testing.T) {
	t.Parallel()
	s, dir := readSchema(t), t.TempDir()
	env := append(bare(dir), "LEASEHOLD_FILE="+filepath.Join(dir, "locks.db"))
	succeeds(t, env, "acquire", "k")
	w := start(t, dir, env, "elect", "k", "--watch", "--json")
	eventually(t, "a leader is printed", func() bool { return strings.Contains(w.stdout.String(), "\n") })
	w.endsBy(syscall.SIGINT)
	s.lines(t, "leader", w.stdout.String())
}

// readerless returns the write end of a pipe whose read end is closed.
func readerless(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	lab.OK(t, err)
	t.Cleanup(func() { _ = w.Close() })
	lab.OK(t, r.Close())
	return w
}

// withoutReader runs leasehold with its standard output connected to a pipe that has no reader.
func withoutReader(t *testing.T, dir string, env []string, args ...string) (stderr string, code int) {
	t.Helper()
	w := readerless(t)
	p := processOf(t, dir, env, "leasehold", args...)
	p.cmd.Stdout, p.cmd.Stderr = w, &p.stderr
	p.start()
	code = p.wait()
	return p.stderr.String(), code
}

func TestClosedStdoutPipeIsNoErrorOnAnyBackend(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	start(t, dir, env, "acquire", "k", "-f", "grant").ends(0)
	arn := "arn:aws:dynamodb:eu-west-1:123456789012:table/locks"
	for _, args := range [][]string{
		{"ls"}, {"ls", "--json"}, {"ls", "-q", "--check=0.1"},
		{"get", "k"}, {"get", "k", "--json"}, {"get", "-q", "k", "--check=0.1"}, {"get", "k", "--data"},
		{"elect", "k", "--watch"}, {"elect", "k", "--watch", "--json"},
		{"table", "check"}, {"table", "check", "--json"}, {"table", "create"},
		{"table", "policy", "--table", arn}, {"table", "terraform", "--table", arn}, {"table", "cloudformation", "--table", arn},
		{"completion", "bash"}, {"completion", "zsh"}, {"completion", "fish"}, {"completion", "powershell"},
		{"help"}, {"help", "run"}, {"help", "environment"}, {"run", "--help"}, {"--version"}, {"doctor"},
		{"local", "--addr", "127.0.0.1:0"},
	} {
		if said, code := withoutReader(t, dir, env, args...); said != "" || code != 141 && code != 0 {
			t.Errorf("%v: exit code %d: %s", args, code, said)
		}
	}
}

func TestAcquireReleasesLockIfOutputFailsOnAnyBackend(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	said, code := withoutReader(t, dir, env, "acquire", "k")
	lab.Want(t, "exit code", code, 2)
	lab.WantParts(t, "stderr", said, "cannot write the grant to standard output: broken pipe; k was released again")
	start(t, dir, env, "acquire", "-n", "k").ends(0)
}

func TestClosedStderrDoesNotChangeExitCodeOnAnyBackend(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	w := readerless(t)
	unheard := func(args ...string) *process {
		p := processOf(t, dir, env, "leasehold", args...)
		p.cmd.Stderr = w
		p.start()
		return p
	}
	p := unheard("run", "-l", "6", "k", "--", "sh", "-c", works)
	fileNumber(t, filepath.Join(dir, "pid2"))
	unheard("run", "-n", "k", "--", "true").ends(75)
	unheard("run", "k2", "--", "./nothing").ends(127)
	unheard("run", "--file", "new.db", "k", "--", "sh", "-c", "exit 3").ends(3)
	unheard("get", "k2").ends(1)
	unheard("get").ends(2)
	start(t, dir, env, "break", "k", "--token", tokenOf(t, env, "k"), "--yes").ends(0)
	p.ends(123)
}
