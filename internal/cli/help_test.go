package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/invocation"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// tree returns a new root command with all its subcommands.
func tree() *cobra.Command { return newRoot(invocation.New(envOf(nil))) }

// everyCommand calls fn with cmd and, recursively, with each subcommand and topic that is
// not hidden.
func everyCommand(cmd *cobra.Command, fn func(*cobra.Command)) {
	if cmd.Hidden {
		return
	}
	fn(cmd)
	for _, sub := range cmd.Commands() {
		everyCommand(sub, fn)
	}
}

func helpOf(t *testing.T, cmd *cobra.Command) string {
	t.Helper()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.InitDefaultHelpFlag()
	lab.OK(t, cmd.Help())
	return out.String()
}

// screen is the greatest number of lines that the help of one command may have.
const screen = 50

func TestHelpOfCommandListsAllFlagsOnOneScreen(t *testing.T) {
	everyCommand(tree(), func(cmd *cobra.Command) {
		if !cmd.Runnable() {
			return // cmd is a help topic, not a command
		}
		text := helpOf(t, cmd)
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			lab.WantParts(t, cmd.CommandPath()+" --help", text, "--"+f.Name+" ")
		})
		for _, sub := range cmd.Commands() {
			if topic := !sub.Runnable() && strings.Contains(text, "leasehold help "+sub.Name()); !sub.Hidden && !topic {
				lab.WantParts(t, cmd.CommandPath()+" --help", text, "\n  "+sub.Name()+" ")
			}
		}
		if lines := strings.Count(text, "\n"); cmd.HasParent() && lines > screen { // the help of the root command may be longer, because it lists all commands
			t.Errorf("%s: %d lines of help", cmd.CommandPath(), lines)
		}
	})
}

func TestHelpFitsTerminalOf80Columns(t *testing.T) {
	everyCommand(tree(), func(cmd *cobra.Command) {
		for _, line := range strings.Split(helpOf(t, cmd), "\n") {
			if columns := utf8.RuneCountInString(line); columns > 80 && !strings.Contains(line, "arn:") { // a line with an ARN may be longer, because the ARN cannot be shorter
				t.Errorf("%s: %d columns: %s", cmd.CommandPath(), columns, line)
			}
		}
	})
}

func TestDurationFlagsAcceptPlainSeconds(t *testing.T) {
	found := 0
	everyCommand(tree(), func(cmd *cobra.Command) {
		timed := false
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			usage := strings.Contains(f.Usage, "DURATION")
			if _, ok := f.Value.(*arguments.Duration); ok != usage && f.Name != "grace" {
				t.Errorf("%s --%s: a duration flag: %v; its help says DURATION: %v", cmd.CommandPath(), f.Name, ok, usage)
			}
			if f.Value.Type() != "duration" {
				return
			}
			timed, found = true, found+1
			if err := f.Value.Set("30"); err != nil || f.Value.String() != "30s" {
				t.Errorf("%s --%s 30: %s, %v", cmd.CommandPath(), f.Name, f.Value, err)
			}
		})
		if timed && !strings.Contains(helpOf(t, cmd), "\nDURATION is a number of seconds") {
			t.Errorf("%s --help does not say how a DURATION is written", cmd.CommandPath())
		}
	})
	if found < 8 {
		t.Errorf("%d flags found", found)
	}
}

func TestHelpListsEveryFieldOfEvents(t *testing.T) {
	text, _ := helpText("events")
	fields := reflect.TypeFor[say.Event]()
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ",")
		lab.WantMatch(t, "leasehold help events", text, `\b`+name+`([:;,.]| \(| if| once)`)
	}
}

// internals matches texts that mean nothing to a user: names of packages, and messages of
// libraries. An error message of leasehold must not contain such a text.
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

// typedWord matches one word of a command line in testdata/usage.txt. The word may be in
// single quotes.
var typedWord = regexp.MustCompile(`'[^']*'|\S+`)

// Each block of testdata/usage.txt contains a command line and, on the next line, a part of
// the error message that this command line must cause.
func TestUsageErrorIsExplainedWithoutSendingRequest(t *testing.T) {
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
		_, errs, code := typed(t, map[string]string{"HOME": dir}, args...)
		if !strings.Contains(errs, want) || code != 2 && code != 125 {
			t.Errorf("%q: exit code %d: %s", line, code, errs)
		}
		lab.Want(t, line+": a text of no meaning to users in: "+errs, internals.FindString(strings.TrimPrefix(errs, "leasehold: ")), "")
		lab.WantNoPart(t, line, errs, "hunter2", "still trying") // the password, and the message about a request that was sent
		if strings.HasPrefix(args[0], "--file") && strings.Contains(errs, "DynamoDB") {
			t.Errorf("%q: the message mentions DynamoDB: %s", line, errs)
		}
		lab.WantMatch(t, line, strings.TrimSpace(errs), `^(leasehold: .*\n?)+$`)
	}
}
