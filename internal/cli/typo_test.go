package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/cli/invocation"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// internals matches names of packages and internals of the source. An error message must
// not contain them, because they mean nothing to a user.
var internals = regexp.MustCompile(`strconv|boltstore|localdynamo|bbolt|smithy|pflag|cobra|context (deadline|canceled)|operation error|response error|RequestID|StatusCode|invalid argument|\*?types\.|\*errors|0x[0-9a-f]+|%!|<nil>|Post "|dial tcp|open [^ ]+: open|leasehold: leasehold`)

func envOf(vars map[string]string) invocation.Env {
	no := func() bool { return false }
	return invocation.Env{OnEC2: no, OnTrial: no, LookupEnv: func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}}
}

// typed runs a command line in this process, with the given environment variables.
func typed(t *testing.T, vars map[string]string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	env := envOf(vars)
	for k, v := range vars {
		env.Environ = append(env.Environ, k+"="+v)
	}
	env.Args, env.Stdin, env.Stdout, env.Stderr, env.Now = args, strings.NewReader(""), &out, &errs, time.Now
	code = Main(env)
	return out.String(), errs.String(), code
}

// typedWord matches one word, in single quotes or not, of a command line in
// testdata/usage.txt.
var typedWord = regexp.MustCompile(`'[^']*'|\S+`)

// Each block of testdata/usage.txt contains a command line, and below it a part of the
// error that it causes.
func TestUsageErrorIsExplainedBeforeAnyRequest(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		lab.OK(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	// The AWS settings of a real account must not influence this test.
	for name, v := range map[string]string{
		"HOME": dir, "AWS_CONFIG_FILE": write("config", "[profile here]\nregion = eu-west-1\n"), "AWS_SHARED_CREDENTIALS_FILE": write("credentials", ""),
		"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_PROFILE": "", "AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_DYNAMODB": "",
	} {
		t.Setenv(name, v)
	}
	notes := write("notes.txt", strings.Repeat("these are notes\n", 1000)) // a text file, for errors about a file that is not a local store
	values := map[string]string{"DIR": dir, "NOTES": notes, "LONG": strings.Repeat("a", 256)}
	text := os.Expand(string(lab.Must(os.ReadFile("testdata/usage.txt"))(t)), func(name string) string { return values[name] })
	for block := range strings.SplitSeq(text, "\n\n") {
		line, want, ok := strings.Cut(strings.TrimSpace(block), "\n")
		if !ok {
			t.Fatalf("no error below %q", line)
		}
		var args []string
		for _, word := range typedWord.FindAllString(strings.TrimPrefix(line, "leasehold "), -1) {
			args = append(args, strings.Trim(word, "'"))
		}
		began := time.Now()
		_, errs, code := typed(t, map[string]string{"HOME": dir}, args...)
		if !strings.Contains(errs, want) || code != 2 && code != 125 {
			t.Errorf("%q: exit code %d: %s", line, code, errs)
		}
		if word := internals.FindString(strings.TrimPrefix(errs, "leasehold: ")); word != "" {
			t.Errorf("%q: a person gets to see %q: %s", line, word, errs)
		}
		if strings.Contains(errs, "hunter2") {
			t.Errorf("%q: the password is shown: %s", line, errs)
		}
		if strings.HasPrefix(args[0], "--file") && strings.Contains(errs, "DynamoDB") {
			t.Errorf("%q: there is no DynamoDB here: %s", line, errs)
		}
		if strings.Contains(errs, "still trying") || time.Since(began) > 2*time.Second {
			t.Errorf("%q: something was sent: %v: %s", line, time.Since(began), errs)
		}
		for _, said := range strings.Split(strings.TrimSpace(errs), "\n") {
			if !strings.HasPrefix(said, "leasehold: ") {
				t.Errorf("%q: %s", line, said)
			}
		}
	}
}
